import { readFileSync } from 'node:fs';
import { Queue } from '../client/queue.js';
import { Keys } from '../redis/keys.js';
import { BenchProcess } from './bench-process.js';
import type { BenchRedis } from './bench-redis.js';
import { type OwnResult, roundFigure, say } from './figures.js';
import type { GateReport } from './gate-worker.js';
import { startScheduler } from './processes.js';
import { Producer } from './producers.js';
import { until } from './until.js';

/** Runs a second: below what one stock worker can do. */
const RATE = 2000;
const BURST = 1000;
const MAX_WAITING = 2000;
const DAY = 86_400_000;
/** Jobs that show how fast this machine stores them. */
const PROBED = 3000;
/** ms between two samples of what has gone through. */
const EVERY = 20;
/** ms */
const PATIENCE = 900_000;

interface Sample {
  at: number;
  gone: number;
}

/**
 * Jobs of priority 10 that are due all at one instant, through a gate: whether it keeps its rate, what it takes of the
 * scheduler's memory, and how soon an urgent job and another tenant's single one start in the middle.
 */
export async function gate(redis: BenchRedis, jobs: number): Promise<OwnResult> {
  await redis.empty();
  const scheduler = await startScheduler(redis.url);
  const worker = await BenchProcess.start('gate-worker', redis.url);
  const queue = new Queue('q', { connection: { url: redis.url } });
  try {
    await queue.gate.set({ rate: RATE, burst: BURST, maxWaiting: MAX_WAITING });
    const due = await addHerd(redis, jobs);
    const passing = new Passing(redis, jobs);
    await passing.until(Math.floor(jobs * 0.1), 'the first tenth');
    const rss = memoryOf(scheduler.pid);
    const added: Record<string, number> = {};
    for (const [name, opts, share] of [
      ['urgent', { priority: 1, group: 'bulk' }, 0.4],
      ['other', { priority: 10, group: 'other' }, 0.6],
    ] as const) {
      await passing.until(Math.floor(jobs * share), `the ${name} job’s turn`);
      added[name] = await redis.now();
      await queue.add(name, {}, { jobId: name, ...opts });
    }
    let most = rss;
    await passing.until(jobs, 'the last job', () => {
      most = Math.max(most, memoryOf(scheduler.pid));
    });
    let report: GateReport = { ran: 0, doubled: 0, named: {} };
    await until(
      'the last handler',
      async () => {
        worker.writeLine('?');
        report = JSON.parse(await worker.line()) as GateReport;
        return report.ran >= jobs + 2;
      },
      { timeout: 60_000, every: 200 },
    ).catch(() => say(`only ${report.ran} of ${jobs + 2} ran`));
    const { mean, worstSecond, entries } = passing.figures();
    if (entries !== jobs + 2) say(`${entries} entries were seen of ${jobs + 2}`);
    return {
      name: 'gate',
      jobs,
      rounds: 1,
      rate: RATE,
      burst: BURST,
      lost: jobs + 2 - report.ran,
      doubled: report.doubled,
      rateError: roundFigure(Math.abs(mean / RATE - 1)),
      meanRate: roundFigure(mean),
      worstSecond,
      aboveRateAndBurst: Math.max(0, worstSecond - RATE - BURST),
      urgentMs: roundFigure((report.named.urgent ?? Number.NaN) - (added.urgent ?? 0)),
      otherTenantMs: roundFigure((report.named.other ?? Number.NaN) - (added.other ?? 0)),
      rssGrowthMiB: roundFigure((most - rss) / 1024 / 1024),
      tookMs: roundFigure((await redis.now()) - due),
    };
  } finally {
    await queue.close();
    await worker.stop();
    await scheduler.stop();
  }
}

/** What has gone through: by Redis' own counts and clock, both at one instant, and each run's entry by its event. */
class Passing {
  readonly #samples: Sample[] = [];
  /** ms of each entry into the queue, in order. */
  readonly #entries: number[] = [];
  #read = '-';
  readonly #queues = new Keys('carillon').queues;

  constructor(
    private readonly redis: BenchRedis,
    private readonly jobs: number,
  ) {}

  async until(gone: number, what: string, also: () => void = () => undefined): Promise<void> {
    const asked = async () => {
      also();
      return (await this.#sample()) >= gone;
    };
    await until(what, asked, { timeout: PATIENCE, every: EVERY });
  }

  /** Runs a second over all but the start, and in the worst of all seconds, wherever it begins. */
  figures(): { mean: number; worstSecond: number; entries: number } {
    const list = this.#samples.filter(({ gone }) => gone > 0 && gone <= this.jobs);
    const first = list.find(({ gone }) => gone > BURST) as Sample;
    const last = list.find(({ gone }) => gone >= this.jobs) ?? (list.at(-1) as Sample);
    let worstSecond = 0;
    let from = 0;
    this.#entries.forEach((at, index) => {
      while (at - (this.#entries[from] as number) >= 1000) from++;
      worstSecond = Math.max(worstSecond, index - from + 1);
    });
    return {
      mean: ((last.gone - first.gone) / (last.at - first.at)) * 1000,
      worstSecond,
      entries: this.#entries.length,
    };
  }

  /** Read as they come: BullMQ keeps the last 10,000 events. */
  async #readEntries(): Promise<void> {
    const events = await this.redis.client.xrange('bull:q:events', this.#read, '+');
    for (const [id, fields] of events) {
      this.#read = `(${id}`;
      if (fields[fields.indexOf('event') + 1] === 'waiting') this.#entries.push(Number(id.split('-')[0]));
    }
  }

  async #sample(): Promise<number> {
    await this.#readEntries();
    const [counts, time] = (
      (await this.redis.client.multi().hmget(this.#queues, 'q:scheduled', 'q:held').time().exec()) as [
        unknown,
        unknown,
      ][]
    ).map(([, reply]) => reply) as [(string | null)[], [number, number]];
    // Those that showed how fast jobs are stored stay pending.
    const left = counts.reduce((sum, count) => sum + Number(count ?? 0), -PROBED);
    const gone = this.jobs - left;
    this.#samples.push({ at: Number(time[0]) * 1000 + Number(time[1]) / 1000, gone });
    return gone;
  }
}

/** Adds the herd and returns when it is due. */
async function addHerd(redis: BenchRedis, jobs: number): Promise<number> {
  const probe = new Producer('carillon', redis.url);
  const bulk = new Producer('carillon', redis.url, 'bull', { priority: 10, group: 'bulk' });
  try {
    const from = Math.floor(await redis.now());
    await probe.add(PROBED, () => from + DAY, { idPrefix: 'probe-' });
    const each = ((await redis.now()) - from) / PROBED;
    const due = Math.ceil((await redis.now()) + 2000 + 2 * each * jobs);
    await bulk.add(jobs, () => due);
    return due;
  } finally {
    await probe.close();
    await bulk.close();
  }
}

/** Bytes that a process holds. */
function memoryOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}
