import { describe, expect, test } from 'vitest';
import { BUCKETS, bucketOf } from '../../src/domain/buckets.js';
import { HOST_TIME_ZONES } from '../../src/domain/time-zone-offsets.js';
import type { ScheduleRecord } from '../../src/redis/record.js';
import { TimeZoneStore } from '../../src/redis/time-zone-store.js';
import { eventually } from '../support/eventually.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { newerDubai as newer, DUBAI as TZ } from '../support/time-zones.js';

const HOUR = 3600;

async function recordOf(world: ScheduleWorld, id: string): Promise<ScheduleRecord> {
  return (await world.spine.jobs.get(QUEUE, id)).record as ScheduleRecord;
}

/** All buckets are done. */
async function carried(world: ScheduleWorld): Promise<void> {
  const { client, keys } = world.spine;
  await eventually(async () => expect(await client.exists(keys.zoneMoves)).toBe(0));
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** 02:30 in Dubai, each day, whatever its overlap. */
const DAILY = { cron: '30 2 * * *', tz: TZ, missed: 'all', overlap: 'allow' } as const;
const TEMPLATE = { name: 'tick' };

describe('two versions of the tz data', () => {
  // 02:30 of the day before in Dubai is 22:30Z; under the new rules 21:30Z or 23:30Z.
  test.for([
    ['an hour later, after the run of the local day', '2024-03-05T22:45:00Z', 3, '2024-03-06T23:30:00Z'],
    ['an hour earlier, after the run of the local day', '2024-03-05T22:45:00Z', 5, '2024-03-06T21:30:00Z'],
    ['an hour later, before it', '2024-03-05T22:00:00Z', 3, '2024-03-05T23:30:00Z'],
  ] as const)('%s: the daily run comes once on each local day', async ([, at, hours, first], { task }) => {
    const world = await ScheduleWorld.at('2024-03-04T12:00:00Z', task);
    await world.schedules.upsert('daily', DAILY, TEMPLATE);
    const before = await world.startScheduler();
    await world.passTo('2024-03-04T22:31:00Z');
    await world.passTo(at);
    const soFar = await world.runs();
    await before.stop();

    const timeZones = newer('2024-03-05T20:00:00Z', hours);
    await world.startScheduler({ timeZones });
    await eventually(async () => expect(iso((await recordOf(world, 'daily')).cur)).toBe(first));
    await carried(world);
    const day = 86_400_000;
    for (let n = 0; n < 3; n++) await world.passTo(Date.parse(first) + n * day + 60_000);
    const expected = [0, 1, 2].map((n) => iso(Date.parse(first) + n * day));
    expect(await world.runs()).toEqual([...soFar, ...expected]);
    // The date of each run by the rules of its own time: none twice, none left out.
    const dates = [
      ...soFar.map((run) => [run, 4] as const),
      ...expected.map((run) => [run, hours] as const),
    ].map(([run, offset]) => new Date(Date.parse(run) + offset * 3_600_000).toISOString().slice(0, 16));
    expect(dates).toEqual(dates.map((_, n) => `2024-03-0${5 + n}T02:30`));
    expect(await new TimeZoneStore(world.spine.shard).all()).toMatchObject(
      new Map([[TZ, { recorded: { version: '9999a' } }]]),
    );
  });

  test('due at its old time while the data changes, it waits for its new one', async ({ task }) => {
    const world = await ScheduleWorld.at('2024-03-05T12:00:00Z', task);
    await world.schedules.upsert('daily', DAILY, TEMPLATE);
    await world.schedules.upsert('paused', DAILY, TEMPLATE);
    await world.schedules.get('paused').pause();
    await world.startScheduler({ timeZones: newer('2024-03-05T13:00:00Z', 3) });
    await eventually(async () =>
      expect(iso((await recordOf(world, 'daily')).cur)).toBe('2024-03-05T23:30:00Z'),
    );
    await carried(world);
    // Paused ones are carried over too.
    const paused = await recordOf(world, 'paused');
    expect([iso(paused.cur), iso(paused.next), paused.state]).toEqual([
      '2024-03-05T23:30:00Z',
      '2024-03-06T23:30:00Z',
      'paused',
    ]);
    await world.passTo('2024-03-05T23:00:00Z');
    expect(await world.runs()).toEqual([]);
    await world.passTo('2024-03-05T23:30:00Z');
    expect(await world.runs('daily')).toEqual(['2024-03-05T23:30:00Z']);
  });

  test('a walk that was cut short and begun again carries nothing twice', async ({ task }) => {
    const world = await ScheduleWorld.at('2024-03-05T12:00:00Z', task);
    await world.schedules.upsert('hourly', { ...DAILY, cron: '30 9-17 * * *' }, TEMPLATE);
    const { client, keys, shard } = world.spine;
    const store = new TimeZoneStore(shard);
    const before = await client.hget(keys.zones, TZ);
    const begun = await client.hget(keys.meta, 'inc');
    const timeZones = newer('2024-03-04T00:00:00Z', 3);
    // 16:30 in Dubai was 12:30Z. What is 16:30 now was 17:30: carried again it would move again.
    for (let round = 0; round < 2; round++) {
      if (round === 1) {
        await client.hset(keys.zoneMoves, TZ, before as string);
        for (let bucket = 0; bucket < BUCKETS; bucket++)
          await client.hset(keys.zoneMoves, `${bucket}|${TZ}`, begun as string);
      }
      const scheduler = await world.startScheduler({ timeZones });
      await eventually(async () => {
        const zone = (await store.all()).get(TZ);
        expect(zone).toMatchObject({ recorded: { version: '9999a' } });
        expect(zone?.move).toBeUndefined();
      });
      expect(iso((await recordOf(world, 'hourly')).cur)).toBe('2024-03-05T13:30:00Z');
      await scheduler.stop();
    }
    expect(await client.exists(keys.zoneMoves)).toBe(0);
  });

  test('hundreds of schedules that fire while they are carried over: each at its new time, none twice', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2024-03-05T12:00:30Z', task);
    const ids = Array.from({ length: 300 }, (_, i) => `s${i}`);
    for (const [i, id] of ids.entries())
      await world.schedules.upsert(id, { ...DAILY, cron: `${i % 60} ${i % 24} * * *` }, TEMPLATE);
    const first = await world.startScheduler();
    await world.passBy(3_600_000, '2024-03-06T00:00:30Z');
    await first.stop();
    await world.startScheduler({ timeZones: newer('2024-03-04T00:00:00Z', 3) });
    const store = new TimeZoneStore(world.spine.shard);
    await eventually(async () => {
      await world.setClock((await world.now()) + 60_000);
      const zone = (await store.all()).get(TZ);
      expect(zone).toMatchObject({ recorded: { version: '9999a' } });
      expect(zone?.move).toBeUndefined();
    });
    await world.settle();
    for (const [i, id] of ids.entries()) {
      const { cur, next } = await recordOf(world, id);
      for (const tick of [cur, next]) {
        const local = new Date(tick + 3 * 3_600_000);
        expect([local.getUTCHours(), local.getUTCMinutes()]).toEqual([i % 24, i % 60]);
      }
      expect(next - cur).toBe(86_400_000);
    }
    const runs = await world.runIds();
    expect(new Set(runs).size).toBe(runs.length);
    await expectHealthy(world.spine, 'leader');
  }, 60_000);

  test('data that is older than what schedules were planned with changes nothing, and is not used', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2024-03-05T12:00:00Z', task);
    await world.schedules.upsert('daily', DAILY, TEMPLATE);
    await world.startScheduler({ timeZones: newer('2024-03-05T13:00:00Z', 3, '1999a') });
    await world.passTo('2024-03-05T22:30:00Z');
    await world.passTo('2024-03-06T22:30:00Z');
    expect(await world.runs()).toEqual(['2024-03-05T22:30:00Z', '2024-03-06T22:30:00Z']);
    expect(iso((await recordOf(world, 'daily')).next)).toBe('2024-03-08T22:30:00Z');
  });

  test('the zone is recorded with the first tick, and only what names it is looked at', async ({ task }) => {
    const world = await ScheduleWorld.at('2024-03-05T12:00:00Z', task);
    await world.schedules.upsert('daily', DAILY, TEMPLATE);
    await world.schedules.upsert('utc', { ...DAILY, tz: 'UTC' }, TEMPLATE);
    await world.schedules.upsert(
      'other',
      { ...DAILY, tz: 'Europe/London' },
      { ...TEMPLATE, data: { tz: TZ } },
    );
    const store = new TimeZoneStore(world.spine.shard);
    const zones = await store.all();
    expect([...zones.keys()].sort()).toEqual([TZ, 'Europe/London']);
    expect(zones.get(TZ)).toMatchObject({
      recorded: { version: HOST_TIME_ZONES.version, offsets: [[expect.any(Number), 4 * HOUR]] },
    });
    const users: string[] = [];
    for (let walked = 0; walked < BUCKETS; walked++) {
      for await (const { identity, bucket } of store.users(walked, [TZ])) {
        expect([bucket, bucket]).toEqual([walked, bucketOf(identity)]);
        users.push(identity);
      }
    }
    expect(users).toEqual([`${QUEUE}:daily`]);
  });
});
