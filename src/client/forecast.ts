import type { Redis } from 'ioredis';
import { checkCall } from '../config/call-options.js';
import { BoundedMap } from '../domain/bounded-map.js';
import { BUCKETS } from '../domain/buckets.js';
import type { CalendarSet } from '../domain/calendar.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import { ForecastBuilder, type LoadForecast } from '../domain/forecast.js';
import { checkQueueName, splitIdentity } from '../domain/ids.js';
import type { StoredPolicies } from '../domain/schedule.js';
import { CalendarStore } from '../redis/calendar-store.js';
import { DueCounts } from '../redis/due-counts.js';
import type { JobScripts } from '../redis/job-scripts.js';
import { decodeRecord, dueTimeOf, type ScheduleRecord } from '../redis/record.js';
import type { Shard } from '../redis/shard.js';
import { redisTime } from './doctor-server.js';

export interface LoadForecastOptions {
  /** 1 to 168. Defaults to 24. */
  hours?: number;
  /** Only this queue. */
  queue?: string;
  /** How many peaks are named, 0 to 100. Defaults to 5. */
  peaks?: number;
}

/** A forecast from what stands in the timers. */
export interface TimersForecast extends LoadForecast {
  /** Schedules that it was made from; paused, suspended and ended ones fire nothing and are not among them. */
  schedules: number;
  /** One-time jobs in it. */
  oneTime: number;
  /** Timers that are due already and still stand there; in no minute of the forecast. */
  overdue: number;
  /** The part of the one-time jobs that was looked at, 0 to 1; what it holds was scaled up to all. */
  sampled: number;
  /** Schedules that could not be computed, as `<queue>:<id>: <why>`; the first few. */
  problems: string[];
}

const RECORDS_A_PAGE = 200;
/** One-time jobs beyond this are sampled: identities are spread over buckets by hash, so some buckets stand for all. */
const MOST_TIMERS = 200_000;
const MOST_PROBLEMS = 10;

/**
 * Reads schedules and timers bucket by bucket and forecasts from them. Nothing is written; each call to Redis is short.
 * @throws CarillonError INVALID_OPTION, INVALID_ID
 */
export async function forecastTimers(
  { client, shard, scripts }: { client: Redis; shard: Shard; scripts: JobScripts },
  options: LoadForecastOptions = {},
): Promise<TimersForecast> {
  checkCall(options, ['hours', 'queue', 'peaks']);
  const { queue, hours, peaks } = options;
  if (queue !== undefined) checkQueueName(queue);
  // Asking about a namespace must not create it, as every script would.
  if ((await client.exists(shard.keys.layout)) === 0) {
    const builder = new ForecastBuilder({ from: await redisTime(client), hours, peaks });
    return { ...builder.build(), schedules: 0, oneTime: 0, overdue: 0, sampled: 1, problems: [] };
  }
  const counts = new DueCounts(shard);
  const now = await counts.now();
  const builder = new ForecastBuilder({ from: now, hours, peaks });
  return new TimersReader(scripts, counts, new CalendarStore(shard), builder, now, queue).read();
}

/** One forecast while it is being read. */
class TimersReader {
  readonly #policies = new BoundedMap<StoredPolicies>(10_000);
  readonly #problems: string[] = [];
  #schedules = 0;
  #oneTime = 0;

  constructor(
    private readonly scripts: JobScripts,
    private readonly counts: DueCounts,
    private readonly calendars: CalendarStore,
    private readonly builder: ForecastBuilder,
    private readonly now: number,
    private readonly queue: string | undefined,
  ) {}

  async read(): Promise<TimersForecast> {
    const sizes = await this.counts.sizes(this.now, this.builder.to);
    const overdue = sum(await this.counts.sizes(0, this.now));
    const looked = firstBuckets(sizes, MOST_TIMERS);
    const sampled = sum(sizes) === 0 ? 1 : sum(sizes.slice(0, looked)) / sum(sizes);
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const pending = await this.#readSchedules(bucket);
      if (bucket < looked) await this.#readTimers(bucket, pending, sampled);
    }
    return {
      ...this.builder.build(),
      schedules: this.#schedules,
      oneTime: Math.round(this.#oneTime),
      overdue,
      sampled,
      problems: this.#problems,
    };
  }

  /** Gives the bucket's schedules to the forecast; the pending ticks of them, by queue and minute. */
  async #readSchedules(bucket: number): Promise<Map<string, number>> {
    const pending = new Map<string, number>();
    const filter = {
      kind: 'schedule' as const,
      states: ['scheduled' as const],
      count: RECORDS_A_PAGE,
      ...(this.queue === undefined ? {} : { queue: this.queue }),
    };
    let cursor = '0';
    do {
      const page = await this.scripts.list(bucket, cursor, filter);
      cursor = page.cursor;
      const calendars = await this.calendars.named(
        page.found.flatMap(({ bytes }) => this.#calendarsOf(bytes)),
      );
      for (const { identity, bytes } of page.found) this.#addSchedule(identity, bytes, calendars, pending);
    } while (cursor !== '0');
    return pending;
  }

  #addSchedule(identity: string, bytes: Buffer, calendars: CalendarSet, pending: Map<string, number>): void {
    try {
      const record = decodeRecord(bytes) as ScheduleRecord;
      const { queue, jobId } = splitIdentity(identity);
      this.builder.add({
        queue,
        id: jobId,
        policies: this.#read(record.policies),
        createdAt: record.anchor,
        calendars,
        count: record.count,
      });
      this.#schedules += 1;
      const dueAt = dueTimeOf(record);
      if (dueAt > 0) {
        const key = minuteKey(queue, dueAt);
        pending.set(key, (pending.get(key) ?? 0) + 1);
      }
    } catch (error) {
      // One bad record is no reason to foresee nothing; `doctor` tells more of it.
      if (this.#problems.length < MOST_PROBLEMS) {
        this.#problems.push(`${identity}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  /** The calendars that a schedule names; what cannot be read is told of later. */
  #calendarsOf(bytes: Buffer): string[] {
    if (!bytes.includes('"exclude":')) return [];
    try {
      return calendarsOf(this.#read((decodeRecord(bytes) as ScheduleRecord).policies).exclude);
    } catch {
      return [];
    }
  }

  /** Many schedules have one text: it is read once. */
  #read(text: string): StoredPolicies {
    let policies = this.#policies.get(text);
    if (policies === undefined) {
      policies = JSON.parse(text) as StoredPolicies;
      this.#policies.set(text, policies);
    }
    return policies;
  }

  /** The bucket's timers, less the ticks of schedules, which the forecast has from their definitions. */
  async #readTimers(bucket: number, pending: Map<string, number>, sampled: number): Promise<void> {
    for await (const { queue, at, count } of this.counts.ofBucket(
      bucket,
      this.now,
      this.builder.to,
      this.queue,
    )) {
      const key = minuteKey(queue, at);
      const ticks = Math.min(count, pending.get(key) ?? 0);
      pending.set(key, (pending.get(key) ?? 0) - ticks);
      if (count === ticks) continue;
      const jobs = (count - ticks) / sampled;
      this.#oneTime += jobs;
      this.builder.addOneTime({ queue, at, count: jobs });
    }
  }
}

/** How many buckets, from the first on, hold at least `most` timers; all if they hold fewer. */
function firstBuckets(sizes: readonly number[], most: number): number {
  let seen = 0;
  for (let bucket = 0; bucket < sizes.length; bucket++) {
    seen += sizes[bucket] as number;
    if (seen >= most) return bucket + 1;
  }
  return sizes.length;
}

function minuteKey(queue: string, at: number): string {
  return `${queue}:${Math.floor(at / 60_000)}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
