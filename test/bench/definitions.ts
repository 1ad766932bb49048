import type { BenchRedis } from '../../src/bench/bench-redis.js';
import { type BenchResult, type Figures, roundFigure, say } from '../../src/bench/figures.js';
import { startScheduler } from '../../src/bench/processes.js';
import { tooSlow, until } from '../../src/bench/until.js';
import { Queue } from '../../src/index.js';

/** One in so many fires at the bench's instant. */
const FIRING = 5;
/** Schedules that are written at once. */
const IN_FLIGHT = 500;
/** Definitions that show how fast this machine stores them. */
const PROBED = 5000;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const ZONES = [
  'UTC', 'Europe/London', 'Europe/Berlin', 'America/New_York', 'America/Los_Angeles', 'Asia/Tokyo', 'Asia/Kolkata',
  'Australia/Sydney', 'America/Sao_Paulo', 'Africa/Cairo',
]; // biome-ignore format: one list

/**
 * So many daily schedules in ten zones, a fifth of them due at one instant: Redis' memory, how long their dispatch takes
 * beside that of as many one-time jobs, and how long after it every successor is planned. The one-time jobs are
 * dispatched twice: alone in Redis, and beside the schedules of other times, whose memory both then share.
 */
export async function definitions(redis: BenchRedis, count: number, rounds: number): Promise<BenchResult> {
  const firing = Math.floor(count / FIRING);
  await redis.empty();
  const scheduler = await startScheduler(redis.url);
  const queue = new Queue('q', { connection: { url: redis.url } });
  const jobs = new Queue('jobs', { connection: { url: redis.url } });
  try {
    const alone = await dispatchOfJobs(redis, jobs, firing);
    say(`${firing} one-time jobs alone: ${Math.round(alone)} ms`);
    const figures = await dispatchOfSchedules(redis, queue, count, firing, () =>
      dispatchOfJobs(redis, jobs, firing),
    );
    Object.assign(figures, { oneTimeMs: alone, timesOneTime: (figures.dispatchMs ?? NaN) / alone });
    const rounded = Object.fromEntries(
      Object.entries(figures).map(([name, value]) => [name, roundFigure(value)]),
    );
    return { name: 'definitions', jobs: count, rounds, carillon: rounded, bullmq: {}, ratio: null };
  } finally {
    await jobs.close();
    await queue.close();
    await scheduler.stop();
  }
}

/** ms that so many one-time jobs, due at one instant, take; what they leave in Redis is taken out again. */
async function dispatchOfJobs(redis: BenchRedis, queue: Queue, count: number): Promise<number> {
  const due = Math.ceil(await redis.now()) + 5000 + count / 20;
  const round = String(due);
  for (let from = 0; from < count; from += 1000) {
    const size = Math.min(1000, count - from);
    await queue.addBulk(
      Array.from({ length: size }, (_, i) => ({
        name: 'tick',
        data: {},
        opts: { jobId: `${id(from + i)}-${round}`, at: due },
      })),
    );
  }
  const took = await dispatchedAfter(redis, queue.name, due, count);
  await queue.obliterate({ force: true });
  return took;
}

async function dispatchOfSchedules(
  redis: BenchRedis,
  queue: Queue,
  count: number,
  firing: number,
  peer: () => Promise<number>,
): Promise<Figures> {
  const before = await redis.info('memory', 'used_memory');
  // Those of other times first; they also show how long the others will take.
  const others = count - firing;
  const started = performance.now();
  await upsert(queue, 0, others, (await redis.now()) + 12 * 60 * MINUTE);
  const storing = performance.now() - started;
  const memory = (await redis.info('memory', 'used_memory')) - before;
  say(`${others} definitions of other times stored`);
  const besideMs = await peer();
  say(`${firing} one-time jobs beside them: ${Math.round(besideMs)} ms`);
  const each = storing / Math.max(others, PROBED);
  const due = Math.ceil(((await redis.now()) + 1.5 * each * firing) / SECOND + 2) * SECOND;
  await upsert(queue, others, firing, due);
  if ((await redis.now()) > due - 1000) throw tooSlow('the schedules were stored after their time');
  say(`${count} definitions stored, ${firing} due at ${new Date(due).toISOString()}`);
  const dispatchMs = await dispatchedAfter(redis, queue.name, due, firing);
  await until('planning', async () => (await unplanned(redis)) === 0, { timeout: 10 * MINUTE, every: 100 });
  return {
    bytesPerDefinition: memory / others,
    upsertsPerSecond: (others / storing) * 1000,
    dispatchMs,
    plannedAfterMs: (await redis.now()) - due,
    oneTimeBesideMs: besideMs,
    timesOneTimeBeside: dispatchMs / besideMs,
  };
}

/** Daily schedules whose next tick is the second of `at`, ms. */
async function upsert(queue: Queue, first: number, count: number, at: number): Promise<void> {
  const patterns = ZONES.map((tz) => {
    const wall = new Intl.DateTimeFormat('en-GB', { timeZone: tz, timeStyle: 'medium' }).format(at);
    const [hour, minute, second] = wall.split(':').map(Number);
    return { tz, cron: `${second} ${minute} ${hour} * * *` };
  });
  for (let from = first; from < first + count; from += IN_FLIGHT) {
    const size = Math.min(IN_FLIGHT, first + count - from);
    await Promise.all(
      Array.from({ length: size }, (_, i) => {
        const pattern = patterns[(from + i) % ZONES.length] as (typeof patterns)[0];
        return queue.schedules.upsert(
          id(from + i),
          { ...pattern, missed: 'latest' },
          { name: 'tick', data: {} },
        );
      }),
    );
  }
}

function id(index: number): string {
  return `definition-${String(index).padStart(9, '0')}`;
}

/** ms from `due` until so many runs are in the queue. */
async function dispatchedAfter(
  redis: BenchRedis,
  queue: string,
  due: number,
  count: number,
): Promise<number> {
  const patience = due - (await redis.now()) + 10 * MINUTE;
  await until('the dispatch', async () => (await redis.client.llen(`bull:${queue}:wait`)) >= count, {
    timeout: patience,
    every: 20,
  });
  return (await redis.now()) - due;
}

/** Schedules that the planner has not answered yet. */
async function unplanned(redis: BenchRedis): Promise<number> {
  let left = 0;
  for (let bucket = 0; bucket < 256; bucket++) left += await redis.client.zcard(`{carillon}:${bucket}:plan`);
  return left;
}
