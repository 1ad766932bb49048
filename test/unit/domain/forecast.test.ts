import { describe, expect, test } from 'vitest';
import { checkSchedule } from '../../../src/domain/check-schedule.js';
import { type ForecastOptions, forecast, type LoadForecast } from '../../../src/domain/forecast.js';
import type { ForecastDefinition } from '../../../src/domain/forecast-groups.js';
import { jitterFor } from '../../../src/domain/jitter.js';
import { compileStored, type ScheduleDefinition } from '../../../src/domain/schedule.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;
/** A Monday. */
const FROM = Date.UTC(2026, 5, 15, 10, 7);

function schedules(
  count: number,
  definition: Omit<ScheduleDefinition, 'missed'>,
  over: Partial<ForecastDefinition> = {},
): ForecastDefinition[] {
  const policies = checkSchedule({ missed: 'skip', ...definition }, 'q:any');
  return Array.from({ length: count }, (_, i) => ({
    queue: 'q',
    id: `s${i}`,
    policies,
    createdAt: FROM - 86_400_000,
    ...over,
  }));
}

function of(definitions: ForecastDefinition[], options: Partial<ForecastOptions> = {}): LoadForecast {
  return forecast(definitions, [], { from: FROM, hours: 2, ...options });
}

/** Minutes with firings, as `10:07 → 3`. */
function busy({ from, queues }: LoadForecast, queue = 'q'): Record<string, number> {
  const counts = queues.find((load) => load.queue === queue)?.counts ?? [];
  const entries = counts.map((count, i): [string, number] => [
    new Date(from + i * MINUTE).toISOString().slice(11, 16),
    count,
  ]);
  return Object.fromEntries(entries.filter(([, count]) => count > 0));
}

describe('firings by minute', () => {
  test('an expression, once a schedule', () => {
    expect(busy(of(schedules(3, { cron: '0,30 * * * *' })))).toEqual({
      '10:30': 3,
      '11:00': 3,
      '11:30': 3,
      '12:00': 3,
    });
  });

  test('the forecast begins with the minute that runs, whatever its second', () => {
    const definitions = schedules(1, { cron: '*/20 * * * * *' });
    const result = of(definitions, { from: FROM + 45_678, hours: 1 });
    expect(result.from).toBe(FROM);
    expect(result.to).toBe(FROM + HOUR);
    expect(result.queues[0]?.counts).toEqual(new Array(60).fill(3));
  });

  test('several expressions of one schedule that meet are one firing', () => {
    expect(
      busy(of(schedules(1, { crons: ['15,45 * * * * *', '15 */30 * * * *'] }), { hours: 1 }))['10:30'],
    ).toBe(2);
    expect(
      busy(of(schedules(1, { crons: ['15,45 * * * * *', '20 */30 * * * *'] }), { hours: 1 }))['10:30'],
    ).toBe(3);
  });

  test('a zone has its own midnight', () => {
    const found = of(schedules(2, { cron: '0 0 * * *', tz: 'Asia/Kathmandu' }), { hours: 24 });
    expect(busy(found)).toEqual({ '18:15': 2 });
  });

  test('an interval counts from its anchor, or from the creation of each schedule', () => {
    expect(busy(of(schedules(1, { every: '45m', anchor: '2026-06-15T00:10:00Z' })))).toEqual({
      '10:40': 1,
      '11:25': 1,
    });
    const created = schedules(1, { every: '1h' }, { createdAt: FROM - 30 * MINUTE });
    const others = schedules(2, { every: '1h' }, { createdAt: FROM - 29 * MINUTE });
    expect(busy(of([...created, ...others]))).toEqual({ '10:37': 1, '10:38': 2, '11:37': 1, '11:38': 2 });
  });

  test('an interval that begins later has no ticks before, and one just created does not fire at its creation', () => {
    expect(busy(of(schedules(1, { every: '30m', anchor: FROM + HOUR })))).toEqual({ '11:07': 1, '11:37': 1 });
    expect(busy(of(schedules(1, { every: '1h' }, { createdAt: FROM + 1000 })))).toEqual({ '11:07': 1 });
  });

  test('intervals of seconds and of odd ms', () => {
    expect(of(schedules(1, { every: '7s' }, { createdAt: FROM - 1 })).queues[0]?.total).toBe(1028);
    expect(of(schedules(1, { every: 1 }), { hours: 1 }).queues[0]?.total).toBe(HOUR);
    expect(of(schedules(1, { every: 61_001, anchor: FROM - 100 * 61_001 })).queues[0]?.total).toBe(118 + 1);
  });

  test('startDate, endDate and limit', () => {
    const bounds = { startDate: FROM + 10 * MINUTE, endDate: FROM + 12 * MINUTE };
    expect(busy(of(schedules(1, { cron: '* * * * *', ...bounds })))).toEqual({
      '10:17': 1,
      '10:18': 1,
      '10:19': 1,
    });
    const inSeconds = { startDate: FROM + 10_500, endDate: FROM + MINUTE + 5_000 };
    expect(busy(of(schedules(1, { cron: '* * * * * *', ...inSeconds })))).toEqual({
      '10:07': 49,
      '10:08': 6,
    });
    expect(busy(of(schedules(1, { cron: '* * * * *', limit: 5 }, { count: 3 })))).toEqual({
      '10:07': 1,
      '10:08': 1,
    });
    expect(busy(of(schedules(1, { cron: '* * * * * *', limit: 70 })))).toEqual({ '10:07': 60, '10:08': 10 });
    expect(busy(of(schedules(1, { every: '1m', limit: 2 })))).toEqual({ '10:07': 1, '10:08': 1 });
    expect(of(schedules(1, { cron: '* * * * *', limit: 5 }, { count: 5 })).queues[0]?.total).toBe(0);
  });

  test('H spreads by identity, as it does when they fire', () => {
    const definitions = schedules(200, { cron: 'H * * * *' });
    const expected = new Array<number>(60).fill(0);
    for (const { queue, id, policies, createdAt } of definitions) {
      const next = compileStored(policies, `${queue}:${id}`, createdAt).next(FROM - 1) ?? 0;
      expected[(next - FROM) / MINUTE] = (expected[(next - FROM) / MINUTE] ?? 0) + 1;
    }
    const [load] = of(definitions, { hours: 1 }).queues;
    expect(load?.counts).toEqual(expected);
    expect(new Set(expected).size).toBeGreaterThan(3);
  });

  test('one-time jobs are added to their queue and minute; those outside are left out', () => {
    const result = forecast(
      schedules(1, { cron: '10 10 * * *' }),
      [
        { queue: 'q', at: FROM + 3 * MINUTE + 59_999, count: 4 },
        { queue: 'mail', at: FROM, count: 2 },
        { queue: 'q', at: FROM - 1, count: 9 },
        { queue: 'q', at: FROM + HOUR, count: 9 },
      ],
      { from: FROM, hours: 1 },
    );
    expect(busy(result)).toEqual({ '10:10': 5 });
    expect(busy(result, 'mail')).toEqual({ '10:07': 2 });
    expect(result.queues.map(({ queue, total, busiest }) => [queue, total, busiest])).toEqual([
      ['mail', 2, { at: FROM, count: 2 }],
      ['q', 5, { at: FROM + 3 * MINUTE, count: 5 }],
    ]);
  });

  test('nothing at all', () => {
    expect(of([])).toEqual({ from: FROM, to: FROM + 2 * HOUR, queues: [], peaks: [] });
  });

  test.each([
    { hours: 0 },
    { hours: 169 },
    { hours: 1.5 },
    { hours: Number.NaN },
    { peaks: -1 },
    { peaks: 101 },
  ])('%j is refused', (options) => {
    const [field = ''] = Object.keys(options);
    expect(() => of([], options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', field }));
  });
});

describe('jitter', () => {
  test('is spread over the minutes that it reaches, evenly', () => {
    expect(busy(of(schedules(1000, { cron: '30 10 * * *', jitter: '10m' })))).toEqual(
      Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`10:${30 + i}`, 100])),
    );
  });

  test('agrees with the fire times of many schedules', () => {
    const [definition] = schedules(1, { cron: '*/20 * * * *', jitter: '7m' });
    const { policies } = definition as ForecastDefinition;
    const count = 20_000;
    const actual = new Array<number>(60).fill(0);
    for (let i = 0; i < count; i++) {
      for (const tick of [-7, 13, 33, 53].map((minute) => FROM + minute * MINUTE)) {
        const at = Math.floor((tick + jitterFor(`q:s${i}`, tick, 7 * MINUTE, 20 * MINUTE) - FROM) / MINUTE);
        if (at >= 0 && at < 60) actual[at] = (actual[at] as number) + 1;
      }
    }
    const many = Array.from({ length: count }, (_, i) => ({
      queue: 'q',
      id: `s${i}`,
      policies,
      createdAt: 0,
    }));
    const counts = of(many, { hours: 1 }).queues[0]?.counts ?? [];
    // Five standard deviations of 20,000 throws at seven targets.
    actual.forEach((fired, i) => {
      expect(Math.abs(fired - (counts[i] ?? 0))).toBeLessThan(5 * Math.sqrt(count / 7));
    });
    expect(counts.filter((expected) => expected > 0)).toHaveLength(21);
  });

  test('stays below the following tick', () => {
    expect(busy(of(schedules(60, { cron: '30,31 10 * * *', jitter: '10m' })))['10:30']).toBe(60);
    expect(busy(of(schedules(60, { cron: '30,33 10 * * *', jitter: '10m' })))).toMatchObject({
      '10:30': 20,
      '10:32': 20,
    });
    expect(
      busy(of(schedules(60, { every: '2m', anchor: '2026-06-15T00:07:00Z', jitter: '10m' })))['10:08'],
    ).toBe(30);
  });

  test('what a tick before the forecast has left is in it', () => {
    // 10:05 and ten minutes: eight of them from 10:07 on.
    const [load] = of(schedules(1000, { cron: '5 10 * * *', jitter: '10m' })).queues;
    expect(load?.total).toBe(800);
    const every = schedules(1000, { every: '1d', anchor: '2026-06-10T10:05:00Z', jitter: '10m' });
    expect(of(every).queues[0]?.total).toBe(800);
  });

  test('small shares add up', () => {
    const [load] = of(schedules(3, { cron: '10 10 * * *', jitter: '1h' })).queues;
    expect(load?.total).toBe(3);
    expect(load?.counts.every((count) => count === 0 || count === 1)).toBe(true);
  });
});

describe('peaks', () => {
  const herd = schedules(4_000, { cron: '0 11 * * *' });

  test('are named with what fires then', () => {
    const definitions = [
      ...herd,
      ...schedules(500, { every: '30m', anchor: '2026-06-15T00:00:00Z' }),
      ...schedules(1, { cron: '* * * * *' }, { id: 'lonely' }),
      ...schedules(9, { cron: '0 11 * * *' }, { queue: 'small' }),
    ];
    const oneTime = [{ queue: 'q', at: FROM + 53 * MINUTE, count: 70 }];
    const { peaks } = forecast(definitions, oneTime, { from: FROM, hours: 2 });
    expect(
      peaks.map(({ queue, at, count }) => [queue, new Date(at).toISOString().slice(11, 16), count]),
    ).toEqual([
      ['q', '11:00', 4_571],
      ['q', '10:30', 501],
      ['q', '11:30', 501],
      ['q', '12:00', 501],
    ]);
    expect(peaks[0]?.contributors).toEqual([
      { what: '0 11 * * * (UTC)', count: 4_000, schedules: 4_000, examples: ['s0', 's1', 's2'] },
      { what: 'every 30m', count: 500, schedules: 500, examples: ['s0', 's1', 's2'] },
      { what: 'one-time jobs', count: 70, schedules: 0, examples: [] },
      { what: '* * * * * (UTC)', count: 1, schedules: 1, examples: ['lonely'] },
    ]);
  });

  test('come with the jitter that would flatten them', () => {
    const [peak] = of(herd).peaks;
    // A tenth is enough: ten minutes leave 400 in each.
    expect(peak?.withJitter).toEqual({ jitter: 10 * MINUTE, count: 400, at: FROM + 53 * MINUTE });
  });

  test('what stays of a peak is what cannot be spread', () => {
    const oneTime = [{ queue: 'q', at: FROM + 53 * MINUTE, count: 1_000 }];
    const [peak] = forecast(herd, oneTime, { from: FROM, hours: 2 }).peaks;
    expect(peak?.withJitter).toMatchObject({ jitter: HOUR, at: FROM + 53 * MINUTE });
    expect(peak?.withJitter?.count).toBeCloseTo(1_000 + 4_000 / 60, -1);
  });

  test('of one-time jobs alone, and of schedules with jitter already, have nothing to suggest', () => {
    const oneTime = [{ queue: 'q', at: FROM + 53 * MINUTE, count: 1_000 }];
    const [peak] = forecast([], oneTime, { from: FROM, hours: 2 }).peaks;
    expect(peak).toMatchObject({ count: 1_000, withJitter: undefined });
    const spread = of(schedules(60_000, { cron: '0 11 * * *', jitter: '1h' })).peaks;
    expect(spread.filter(({ withJitter }) => withJitter !== undefined)).toEqual([]);
  });

  test('a jitter is no longer than the way to the next tick', () => {
    const quarters = schedules(1_000, { cron: '*/2 11 * * *' });
    const [peak] = of([...quarters, ...schedules(1_000, { cron: '0 11 * * *' })]).peaks;
    expect(peak?.count).toBe(2_000);
    // The first thousand can only be spread over two minutes.
    expect(peak?.withJitter?.count).toBeGreaterThanOrEqual(500);
  });

  test('an even load has none, and as many are named as asked for', () => {
    expect(of(schedules(5_000, { cron: '* * * * *' })).peaks).toEqual([]);
    const hourly = schedules(50, { cron: '0 * * * *' });
    expect(of(hourly, { hours: 24, peaks: 3 }).peaks).toHaveLength(3);
    expect(of(hourly, { hours: 24, peaks: 0 }).peaks).toEqual([]);
  });

  test('minutes next to each other are one peak', () => {
    const definitions = schedules(1_000, { cron: '0-5 11 * * *' });
    expect(of(definitions, { hours: 24 }).peaks).toHaveLength(1);
  });

  test('schedules that are written alike are one contributor, whatever their times', () => {
    const definitions = Array.from({ length: 3_000 }, (_, i) =>
      schedules(1, { every: '1d' }, { id: `d${i}`, createdAt: FROM - 86_400_000 + 53 * MINUTE + i * 10 }),
    ).flat();
    const [peak] = of(definitions).peaks;
    expect(peak?.contributors).toEqual([
      { what: 'every 1d', count: 3_000, schedules: 3_000, examples: ['d0', 'd1', 'd2'] },
    ]);
  });
});

test('two million schedules over 200 expressions and zones are forecast in seconds of CPU', () => {
  const zones = ['UTC', 'Europe/London', 'America/New_York', 'Asia/Tokyo', 'Asia/Kolkata'];
  const crons = Array.from({ length: 38 }, (_, i) => `${i} ${i % 24} * * *`).concat(
    '* * * * * *',
    '*/5 * * * *',
  );
  const pairs = crons.flatMap((cron) => zones.map((tz) => ({ cron: [cron], tz, missed: 'skip' as const })));
  function* definitions(): Generator<ForecastDefinition> {
    for (let i = 0; i < 2_000_000; i++) {
      const policies = { ...(pairs[i % pairs.length] as (typeof pairs)[number]) };
      yield { queue: `q${i % 7}`, id: `s${i}`, policies, createdAt: FROM - i };
    }
  }
  const started = process.cpuUsage();
  const { queues } = forecast(definitions(), [], { from: FROM, hours: 24 });
  const { user, system } = process.cpuUsage(started);
  const total = queues.reduce((sum, load) => sum + load.total, 0);
  expect(total).toBe(10_000 * 5 * (38 + 86_400 + 288));
  expect((user + system) / 1_000_000).toBeLessThan(10);
}, 120_000);
