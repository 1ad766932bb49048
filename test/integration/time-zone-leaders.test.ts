import { describe, expect, onTestFinished, test } from 'vitest';
import { BUCKETS, bucketOf } from '../../src/domain/buckets.js';
import { recordZone } from '../../src/domain/recorded-offsets.js';
import { HOST_TIME_ZONES, type TimeZoneData } from '../../src/domain/time-zone-offsets.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import type { OwnedRange } from '../../src/redis/owned-ranges.js';
import type { ScheduleRecord } from '../../src/redis/record.js';
import { TimeZoneStore } from '../../src/redis/time-zone-store.js';
import { TimeZoneWatch } from '../../src/scheduler/time-zone-watch.js';
import { defaultLogger } from '../../src/support/logger.js';
import { startMember } from '../support/etcd-cluster.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { DUBAI, newerDubai } from '../support/time-zones.js';

const IDS = Array.from({ length: 24 }, (_, i) => `s${i}`);
const NOON = '2024-03-05T12:00:00Z';
/** 16:30 in Dubai is 12:30Z; at three hours it is 13:30Z, at two 14:30Z. */
const HOURLY = { cron: '30 9-17 * * *', tz: DUBAI, missed: 'all', overlap: 'allow' } as const;

/** Two leaders, each of one half of the buckets, over schedules that a host of today's data planned. */
class Halves {
  readonly store: TimeZoneStore;

  private constructor(readonly world: ScheduleWorld) {
    this.store = new TimeZoneStore(world.spine.shard);
  }

  static async at(task: { name: string }): Promise<Halves> {
    const halves = new Halves(await ScheduleWorld.at(NOON, task));
    for (const id of IDS) await halves.world.schedules.upsert(id, HOURLY, { name: 'tick' });
    return halves;
  }

  /** A half, or all, with its fences raised. */
  async lead(first: number, last: number, token: number): Promise<OwnedRange> {
    const range = { first, last, servedFrom: 0, fence: `1|e|${token}|h${token}` };
    const { raised } = await this.world.spine.leader.takeOver([range]);
    expect(raised).toBe(last - first + 1);
    return range;
  }

  /** The watch of one leader; `owned` may be changed by the test as terms begin and end. */
  async watch(owned: OwnedRange[], host: TimeZoneData = HOST_TIME_ZONES): Promise<TimeZoneWatch> {
    const { spine } = this.world;
    const watch = new TimeZoneWatch({
      store: this.store,
      scripts: spine.leader,
      calendars: new CalendarStore(spine.shard),
      owned: () => owned,
      logger: defaultLogger(),
      now: () => Date.parse(NOON),
      host,
      lookAgain: 500,
    });
    onTestFinished(() => watch.stop());
    await watch.start();
    return watch;
  }

  /** The pending tick of each schedule in some buckets, each once. */
  async ticks(first = 0, last = BUCKETS - 1): Promise<string[]> {
    const found = new Set<string>();
    for (const id of IDS) {
      const bucket = bucketOf(`${QUEUE}:${id}`);
      if (bucket < first || bucket > last) continue;
      const { record } = await this.world.spine.jobs.get(QUEUE, id);
      found.add(new Date((record as ScheduleRecord).cur).toISOString().slice(11, 16));
    }
    return [...found].sort();
  }

  async zone() {
    return (await this.store.all()).get(DUBAI);
  }

  async text(): Promise<string> {
    return (await this.zone())?.text ?? '';
  }
}

const LATER = newerDubai('2024-03-04T00:00:00Z', 3);
const LATEST = newerDubai('2024-03-04T00:00:00Z', 2, '9999b');

describe('several leaders with different tz data', () => {
  test('each carries over what it leads; an older one by what the newer one recorded', async ({ task }) => {
    const halves = await Halves.at(task);
    await halves.watch([await halves.lead(0, 127, 1)], LATER);
    await eventually(async () => expect((await halves.zone())?.move?.done.size).toBe(128));
    expect(await halves.ticks(0, 127)).toEqual(['13:30']);
    expect(await halves.ticks(128)).toEqual(['12:30']);

    const older = await halves.watch([await halves.lead(128, 255, 2)]);
    await eventually(async () => expect((await halves.zone())?.move).toBeUndefined());
    expect(await halves.ticks()).toEqual(['13:30']);
    await eventually(() => expect(older.isStale(DUBAI, 200)).toBe(false));
    // What it plans from here on is by the newer rules too.
    expect(older.data.offsetsOf(DUBAI).spanAt(Date.parse(NOON)).offset).toBe(3 * 3_600_000);
    expect(await halves.zone()).toMatchObject({ recorded: { version: '9999a' } });
  });

  test('a look that a hand-over breaks into ends with every zone judged', async ({ task }) => {
    const halves = await Halves.at(task);
    await halves.watch([await halves.lead(0, 127, 1)], LATER);
    const owned = [await halves.lead(128, 191, 2), await halves.lead(192, 255, 3)];
    const older = await halves.watch(owned);
    await eventually(async () => expect((await halves.zone())?.move).toBeUndefined());
    await older.look([DUBAI]);
    const looking = older.look([DUBAI, 'Asia/Tokyo']);
    owned.pop();
    await older.look([]);
    await looking;
    // What is planned now is by the newer rules.
    expect(older.data.offsetsOf(DUBAI).spanAt(Date.parse(NOON)).offset).toBe(3 * 3_600_000);
  });

  test('one that has looked already hears of newer data while it leads on', async ({ task }) => {
    const halves = await Halves.at(task);
    const older = await halves.watch([await halves.lead(128, 255, 1)]);
    await older.look([DUBAI]);
    expect(older.isStale(DUBAI, 200)).toBe(false);
    await halves.watch([await halves.lead(0, 127, 2)], LATER);
    await eventually(async () => expect(await halves.ticks()).toEqual(['13:30']));
    await eventually(async () => expect((await halves.zone())?.move).toBeUndefined());
  });

  test('a half that changes hands in the middle is gone on with from where it was begun', async ({
    task,
  }) => {
    const halves = await Halves.at(task);
    const { spine } = halves.world;
    const first = [await halves.lead(0, 255, 1)];
    await halves.store.set(
      DUBAI,
      await halves.text(),
      recordZone('9999a', LATER.offsetsOf(DUBAI), Date.parse(NOON)),
      'move',
    );
    // Begun in every bucket; then one schedule is carried over, and its leader is gone.
    for (let bucket = 0; bucket < BUCKETS; bucket++) await halves.store.beginCarrying(first, bucket, [DUBAI]);
    const { record } = await spine.jobs.get(QUEUE, 's0');
    const { inc, ver, cur, last, next } = record as ScheduleRecord;
    const hour = 3_600_000;
    const { outcomes } = await spine.leader.setNext(first, [
      {
        op: 'replan', bucket: bucketOf(`${QUEUE}:s0`), identity: `${QUEUE}:s0`, inc: String(inc), ver: String(ver),
        cur, last, next, newCur: cur + hour, newCurFire: cur + hour, newNext: 0, newNextFire: 0,
      }, // biome-ignore format: one record
    ]);
    expect(outcomes).toEqual(['OK']);

    await halves.watch([await halves.lead(0, 255, 2)]);
    await eventually(async () => expect((await halves.zone())?.move).toBeUndefined());
    // Carried again, s0 would be at 14:30.
    expect(await halves.ticks()).toEqual(['13:30']);
  });

  test('data that is newer still waits until all buckets have come as far', async ({ task }) => {
    const halves = await Halves.at(task);
    const [low, high] = [await halves.lead(0, 127, 1), await halves.lead(128, 255, 2)];
    const noon = Date.parse(NOON);
    await halves.store.set(
      DUBAI,
      await halves.text(),
      recordZone('9999a', LATER.offsetsOf(DUBAI), noon),
      'move',
    );
    await halves.watch([high], LATEST);
    await eventually(async () => expect((await halves.zone())?.move?.done.size).toBe(128));
    expect(await halves.ticks(128)).toEqual(['13:30']);
    expect(await halves.zone()).toMatchObject({ recorded: { version: '9999a' } });
    await halves.watch([low]);
    await eventually(
      async () => {
        expect(await halves.zone()).toMatchObject({ recorded: { version: '9999b' } });
        expect(await halves.ticks()).toEqual(['14:30']);
        expect((await halves.zone())?.move).toBeUndefined();
      },
      { timeout: 15_000 },
    );
  });

  test('a stale leader neither begins nor ends anything; what was read may not have changed', async ({
    task,
  }) => {
    const halves = await Halves.at(task);
    const { client, keys } = halves.world.spine;
    const stale = [await halves.lead(0, 255, 1)];
    await halves.lead(0, 255, 2);
    const text = await halves.text();
    const zone = recordZone('9999a', LATER.offsetsOf(DUBAI), Date.parse(NOON));
    expect(await halves.store.set(DUBAI, `${text} `, zone, 'move')).toBe(false);
    expect(await client.exists(keys.zoneMoves)).toBe(0);
    expect(await halves.store.set(DUBAI, text, zone, 'move')).toBe(true);
    expect(await halves.store.set(DUBAI, JSON.stringify(zone), zone, 'move')).toBe(false);
    expect(await halves.store.beginCarrying(stale, 0, [DUBAI])).toBeUndefined();
    expect(await halves.store.doneCarrying(stale, 0, [DUBAI])).toBe(false);
    expect(await client.hgetall(keys.zoneMoves)).toEqual({ [DUBAI]: text });
  });

  test('schedulers that share the work by etcd, one of them with newer data: every tick is by its rules', async ({
    task,
  }) => {
    const { hosts } = await startTestEtcd();
    const world = await ScheduleWorld.live(task);
    // Once a day at one local time, so that no tick comes while the test runs.
    const later = new Date(Date.now() + 6 * 3_600_000);
    const cron = `30 ${(later.getUTCHours() + 4) % 24} * * *`;
    for (const id of IDS) await world.schedules.upsert(id, { ...HOURLY, cron }, { name: 'tick' });
    const before = await world.list();
    await startMember(world.spine, hosts, 'older', { partitions: 4 });
    await startMember(world.spine, hosts, 'newer', { partitions: 4, timeZones: LATER });
    const store = new TimeZoneStore(world.spine.shard);
    await eventually(
      async () => {
        const zone = (await store.all()).get(DUBAI);
        expect(zone).toMatchObject({ recorded: { version: '9999a' } });
        expect(zone?.move).toBeUndefined();
        const now = await world.list();
        expect(now.map(({ next }) => next)).toEqual(before.map(({ next }) => (next ?? 0) + 3_600_000));
      },
      { timeout: 40_000, every: 200 },
    );
  }, 60_000);
});
