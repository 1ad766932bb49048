import { describe, expect, test } from 'vitest';
import { forecastTimers, type LoadForecastOptions } from '../../src/client/forecast.js';
import { checkSchedule } from '../../src/domain/check-schedule.js';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { DueCounts } from '../../src/redis/due-counts.js';
import { aSchedule, jobs } from '../support/builders.js';
import { NOW, Spine } from '../support/spine.js';
import { changesOf } from '../support/spine-state.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;

function foresee(spine: Spine, options: LoadForecastOptions = {}) {
  const { client, shard, jobs: scripts } = spine;
  return forecastTimers({ client, shard, scripts }, { hours: 2, ...options });
}

/** A schedule with its pending ticks, as a client would store it. */
async function schedule(
  spine: Spine,
  queue: string,
  id: string,
  definition: Omit<ScheduleDefinition, 'missed'>,
  next: number,
): Promise<void> {
  const policies = JSON.stringify(checkSchedule({ ...definition, missed: 'skip' }, `${queue}:${id}`));
  const codes = { overlap: 4, maxOpen: 32, maxConcurrent: 0, keptRows: 50, pauseAfter: 0 };
  const ticks = { cur: next, curFire: next, next: next + MINUTE, nextFire: next + MINUTE };
  await spine.schedules.upsert(queue, id, aSchedule(NOW, { ...codes, ...ticks, policies }), `${queue}${id}`);
}

async function due(spine: Spine, from: number, to: number, queue?: string) {
  const counts = new DueCounts(spine.shard);
  const sum = new Map<string, number>();
  for (let bucket = 0; bucket < 256; bucket++) {
    for await (const { queue: name, at, count } of counts.ofBucket(bucket, from, to, queue)) {
      sum.set(`${name} ${(at - NOW) / MINUTE}`, (sum.get(`${name} ${(at - NOW) / MINUTE}`) ?? 0) + count);
    }
  }
  return Object.fromEntries([...sum].sort());
}

describe('count-due', () => {
  test('counts by queue and minute, from one end to before the other', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const at = (time: number) => ({ time, relative: false });
    await spine.submit(
      'a',
      jobs(5, 'x', (i) => at(NOW + MINUTE + i * 20_000)),
    );
    await spine.submit(
      'b',
      jobs(2, 'x', () => at(NOW + MINUTE)),
    );
    await spine.submit(
      'a',
      jobs(2, 'y', (i) => at(NOW + 5 * MINUTE - i)),
    );
    const { result, changes } = await changesOf(spine, () => due(spine, NOW + MINUTE, NOW + 5 * MINUTE));
    expect(result).toEqual({ 'a 1': 3, 'a 2': 2, 'a 4': 1, 'b 1': 2 });
    expect(changes).toEqual({});
    expect(await due(spine, NOW, NOW + HOUR, 'b')).toEqual({ 'b 1': 2 });
    expect(await due(spine, NOW + 10 * MINUTE, NOW + HOUR)).toEqual({});
    expect(await new DueCounts(spine.shard).now()).toBe(NOW);
  });

  test('pages through many timers of one ms, and of many', async ({ task }) => {
    const spine = await Spine.virtual(task);
    // Straight into the index of one bucket: enough for several pages.
    const entries: (string | number)[] = [];
    for (let i = 0; i < 2_500; i++) entries.push(NOW + MINUTE, `q:same${i}`);
    for (let i = 0; i < 1_500; i++) entries.push(NOW + 2 * MINUTE + i, `q:other${i}`);
    for (let i = 0; i < 1_001; i++) entries.push(NOW + 3 * MINUTE, `r:more${i}`);
    await spine.client.zadd(spine.keys.due(7), ...entries);
    expect(await due(spine, NOW, NOW + HOUR)).toEqual({ 'q 1': 2_500, 'q 2': 1_500, 'r 3': 1_001 });
    expect(await due(spine, NOW + MINUTE, NOW + HOUR, 'r')).toEqual({ 'r 3': 1_001 });
  });

  test('a namespace that was laid out otherwise is refused', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.client.set(spine.keys.layout, '{"shards":2}');
    await spine.client.hset(spine.keys.meta, 'layout', 'other');
    await expect(new DueCounts(spine.shard).now()).rejects.toMatchObject({ code: 'WRONG_LAYOUT' });
  });
});

describe('a forecast from the timers', () => {
  test('schedules and one-time jobs, each once', async ({ task }) => {
    const spine = await Spine.virtual(task);
    // NOW is 08:00.
    await schedule(spine, 'mail', 'quarters', { cron: '*/15 * * * *' }, NOW + 15 * MINUTE);
    await schedule(spine, 'mail', 'half', { cron: '30 8 * * *' }, NOW + 30 * MINUTE);
    await schedule(spine, 'mail', 'still', { cron: '* * * * *' }, NOW + MINUTE);
    await spine.jobs.pause('mail', 'still', '', 'p');
    await spine.submit(
      'mail',
      jobs(40, 'j', (i) => ({ time: NOW + 15 * MINUTE + i * 10, relative: false })),
    );
    await spine.submit(
      'sms',
      jobs(3, 'j', () => ({ time: NOW + 119 * MINUTE, relative: false })),
    );
    await spine.submit(
      'sms',
      jobs(3, 'far', () => ({ time: NOW + 3 * HOUR, relative: false })),
    );
    const { result, changes } = await changesOf(spine, () => foresee(spine));
    expect(changes).toEqual({});
    expect(result).toMatchObject({
      from: NOW,
      to: NOW + 2 * HOUR,
      schedules: 2,
      oneTime: 43,
      overdue: 0,
      sampled: 1,
      problems: [],
    });
    const [mail, sms] = result.queues;
    const busy = (counts: readonly number[] = []) =>
      Object.fromEntries([...counts.entries()].filter(([, count]) => count > 0));
    expect(mail?.queue).toBe('mail');
    // The tick at 08:00 of the minute that runs is counted too: the forecast holds whole minutes.
    expect(busy(mail?.counts)).toEqual({ 0: 1, 15: 41, 30: 2, 45: 1, 60: 1, 75: 1, 90: 1, 105: 1 });
    expect(busy(sms?.counts)).toEqual({ 119: 3 });
    expect(result.peaks).toEqual([
      {
        queue: 'mail',
        at: NOW + 15 * MINUTE,
        count: 41,
        contributors: [
          { what: 'one-time jobs', count: 40, schedules: 0, examples: [] },
          { what: '*/15 * * * * (UTC)', count: 1, schedules: 1, examples: ['quarters'] },
        ],
        withJitter: undefined,
      },
    ]);
  });

  test('of one queue', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await schedule(spine, 'mail', 'a', { every: '1h' }, NOW + HOUR);
    await schedule(spine, 'sms', 'a', { every: '1h' }, NOW + HOUR);
    await spine.submit(
      'sms',
      jobs(2, 'j', () => ({ time: NOW + MINUTE, relative: false })),
    );
    const { queues, schedules, oneTime } = await foresee(spine, { queue: 'mail', hours: 1 });
    expect(queues.map(({ queue }) => queue)).toEqual(['mail']);
    expect([schedules, oneTime]).toEqual([1, 0]);
  });

  test('what is overdue is told, and is in no minute', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit(
      'q',
      jobs(4, 'j', () => ({ time: NOW + 30_000, relative: false })),
    );
    await spine.setClock(NOW + 40_000);
    expect(await foresee(spine)).toMatchObject({ from: NOW, overdue: 4, oneTime: 0, queues: [] });
  });

  test('a schedule that cannot be computed is told of, and the others are foreseen', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await schedule(spine, 'q', 'good', { every: '1h' }, NOW + HOUR);
    const bad = aSchedule(NOW, { policies: '{"cron":["0 0 * * *"],"tz":"Europe/Atlantis","missed":"skip"}' });
    const codes = { overlap: 4, maxOpen: 32, maxConcurrent: 0, keptRows: 50, pauseAfter: 0 };
    await spine.schedules.upsert('q', 'bad', { ...bad, ...codes }, 'r');
    const { schedules, problems } = await foresee(spine);
    expect(schedules).toBe(1);
    expect(problems).toEqual([expect.stringMatching(/^q:bad: tz: "Europe\/Atlantis" is not the name/)]);
  });

  test('more one-time jobs than are looked at are scaled up from some buckets', async ({ task }) => {
    const spine = await Spine.virtual(task);
    for (let bucket = 0; bucket < 256; bucket++) {
      const entries: (string | number)[] = [];
      for (let i = 0; i < 1_000; i++)
        entries.push(NOW + (i % 2 === 0 ? 10 : 20) * MINUTE, `q${i % 4}:b${bucket}-${i}`);
      await spine.client.zadd(spine.keys.due(bucket), ...entries);
    }
    const { sampled, oneTime, queues } = await foresee(spine);
    expect(sampled).toBeCloseTo(200 / 256, 2);
    expect(oneTime).toBe(256_000);
    expect(queues.map(({ total }) => total)).toEqual([64_000, 64_000, 64_000, 64_000]);
    expect(queues[0]?.busiest).toEqual({ at: NOW + 10 * MINUTE, count: 64_000 });
  });

  test('a namespace that holds nothing is not created', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const { namespace, client } = spine;
    await client.del(spine.keys.layout, spine.keys.meta);
    expect(await foresee(spine)).toMatchObject({ queues: [], schedules: 0, peaks: [] });
    expect(await client.exists(`${namespace}:layout`)).toBe(0);
  });

  test.each([{ hours: 0 }, { peaks: 1_000 }, { hour: 5 }])('%j is refused', async (options) => {
    const spine = await Spine.virtual({ name: 'refused' });
    const [field] = Object.keys(options);
    await expect(foresee(spine, options as LoadForecastOptions)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      field,
    });
  });
});
