import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkSchedule } from '../../src/domain/check-schedule.js';
import { forecast } from '../../src/domain/forecast.js';
import type { ForecastDefinition } from '../../src/domain/forecast-groups.js';
import { compileStored, type ScheduleDefinition } from '../../src/domain/schedule.js';

/** Forecasts against a count of every tick of every schedule by itself. */
const MINUTE = 60_000;
/** Two hours around the day on which New York puts its clock forward. */
const FROM = Date.UTC(2026, 2, 8, 6, 0);
const HOURS = 3;
const TO = FROM + HOURS * 60 * MINUTE;

const crons = fc.constantFrom(
  '* * * * * *',
  '*/7 * * * * *',
  '58,59 */4 * * * *',
  '0,30 30 2 * * *',
  '5 0-30/5 2,3 * * *',
  '* * * * *',
  '*/15 * * * *',
  '30 2 * * *',
  '10 6-9 * * 0',
  'H * * * *',
  'H/20 H(0-8) * * *',
  '@every 37s',
  '@every 9m',
  '@hourly',
);
const instant = fc.integer({ min: FROM - 40 * MINUTE, max: TO });
const intervals = fc.constantFrom(
  1,
  999,
  1_000,
  1_500,
  7_000,
  59_999,
  60_000,
  61_001,
  90_000,
  300_000,
  86_400_000,
);
const definitions = fc.record(
  {
    times: fc.oneof(
      crons.map((cron) => ({ cron })),
      fc.array(crons, { minLength: 2, maxLength: 3 }).map((list) => ({ crons: list })),
      intervals.map((every) => ({ every })),
      fc.record({ every: intervals, anchor: instant }),
    ),
    tz: fc.constantFrom('UTC', 'America/New_York', 'Asia/Kathmandu'),
    gap: fc.constantFrom('shift' as const, 'edge' as const, 'skip' as const),
    jitter: fc.nat(2_500),
    startDate: instant,
    endDate: fc.integer({ min: TO - 90 * MINUTE, max: TO + 90 * MINUTE }),
    limit: fc.integer({ min: 1, max: 500 }),
    queue: fc.constantFrom('a', 'b'),
    createdAt: fc.integer({ min: FROM - 50 * 86_400_000, max: FROM + 90_000 }),
  },
  { requiredKeys: ['times', 'queue', 'createdAt'] },
);

/** What each definition gives each minute, asking for one time after the other. */
function counted({ id, queue, policies, createdAt, count = 0 }: ForecastDefinition): Float64Array {
  const timing = compileStored(policies, `${queue}:${id}`, createdAt);
  const minutes = new Float64Array(HOURS * 60);
  let left = (policies.limit ?? Number.POSITIVE_INFINITY) - count;
  const jitter = policies.jitter ?? 0;
  let at = timing.next(FROM - 3_000);
  while (at !== undefined && at < TO && left > 0) {
    const following = timing.next(at);
    const spread = Math.min(jitter, (following ?? Number.POSITIVE_INFINITY) - at - 1);
    // A tick that is one of many in its minute is not spread.
    for (let after = 0; after <= spread; after++) {
      const minute = Math.floor((at + after - FROM) / MINUTE);
      if (minute >= 0 && minute < minutes.length)
        minutes[minute] = (minutes[minute] as number) + 1 / (spread + 1);
    }
    if (at >= FROM) left -= 1;
    at = following;
  }
  return minutes;
}

test('a forecast is the sum of what each schedule does', () => {
  let total = 0;
  fc.assert(
    fc.property(fc.array(definitions, { minLength: 1, maxLength: 6 }), (drawn) => {
      const list = drawn.map(({ times, queue, createdAt, ...rest }, i): ForecastDefinition => {
        const { startDate, endDate } = rest;
        fc.pre(startDate === undefined || endDate === undefined || startDate <= endDate);
        const written = { ...times, ...rest, missed: 'skip' } as ScheduleDefinition;
        // Dense ticks are counted by the minute, without their jitter.
        const dense = JSON.stringify(times).match(
          /\* \* \* \* \*"|,59|\/7|37s|5 0-30|"every":([1-9]\d{0,4}[,}])/,
        );
        if (dense !== null) delete written.jitter;
        return { queue, id: `s${i}`, createdAt, policies: checkSchedule(written, `${queue}:s${i}`) };
      });
      const expected = new Map<string, Float64Array>();
      for (const definition of list) {
        const sum = expected.get(definition.queue) ?? new Float64Array(HOURS * 60);
        counted(definition).forEach((count, i) => {
          sum[i] = (sum[i] as number) + count;
        });
        expected.set(definition.queue, sum);
      }
      const { queues } = forecast(list, [], { from: FROM, hours: HOURS });
      expect(queues.map(({ queue }) => queue)).toEqual([...expected.keys()].sort());
      for (const { queue, counts } of queues) {
        let exact = 0;
        let given = 0;
        let off = 0;
        counts.forEach((count, i) => {
          exact += expected.get(queue)?.[i] ?? Number.NaN;
          given += count;
          off = Math.max(off, Math.abs(given - exact));
        });
        expect(off).toBeLessThanOrEqual(0.5 + 1e-6);
        total += given;
      }
    }),
    { numRuns: 150, seed: 3 },
  );
  expect(total).toBeGreaterThan(500_000);
}, 120_000);
