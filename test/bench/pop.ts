import type { BenchRedis } from '../../src/bench/bench-redis.js';
import { type BenchResult, median, roundFigure, say } from '../../src/bench/figures.js';
import { Producer } from '../../src/bench/producers.js';
import { LeaderScripts, type OwnedRange } from '../../src/redis/leader-scripts.js';
import { Shard } from '../../src/redis/shard.js';
import { eventually } from '../support/eventually.js';

const FEW = 10_000;
const DAY = 86_400_000;
/** Jobs popped in one measurement, and how many one call takes. */
const POPPED = 5000;
const BATCH = 200;

/**
 * What the dispatch of one job costs Redis, with `jobs` pending beside it against 10,000: the time that the script itself
 * takes, in pairs that follow each other. BullMQ has no such script.
 */
export async function pop(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const few = await Pending.of(redis, 'few', Math.min(FEW, jobs));
  const many = await Pending.of(redis, 'many', jobs);
  const [ofFew, ofMany]: [number[], number[]] = [[], []];
  // The first pair warms up.
  for (let round = 0; round <= rounds; round++) {
    const a = await few.measure(round);
    const b = await many.measure(round);
    say(`pair ${round} of ${rounds}: ${roundFigure(a)} and ${roundFigure(b)} µs a job`);
    if (round === 0) continue;
    ofFew.push(a);
    ofMany.push(b);
  }
  await Promise.all([few.close(), many.close()]);
  const carillon = {
    microsecondsAt10k: roundFigure(median(ofFew)),
    microsecondsAtAll: roundFigure(median(ofMany)),
    growth: roundFigure(median(ofMany.map((cost, i) => cost / (ofFew[i] ?? NaN)))),
  };
  return { name: 'pop', jobs, rounds, carillon, bullmq: {}, ratio: null };
}

/** A namespace with jobs that are due in a day. */
class Pending {
  private constructor(
    private readonly redis: BenchRedis,
    private readonly producer: Producer,
    private readonly scripts: LeaderScripts,
    private readonly owned: OwnedRange[],
    private readonly waitKey: string,
  ) {}

  static async of(redis: BenchRedis, name: string, jobs: number): Promise<Pending> {
    say(`adding ${jobs} jobs that are due in a day`);
    const producer = new Producer('carillon', redis.url, name);
    const due = Date.now() + DAY;
    await producer.add(jobs, () => due);
    const shard = new Shard(redis.client, { namespace: `carillon-${name}`, prefix: name });
    const scripts = new LeaderScripts(shard);
    const range = { first: 0, last: 255, servedFrom: 0, fence: '1|bench|1|bench' };
    await scripts.takeOver([range]);
    return new Pending(redis, producer, scripts, [range], `${name}:q:wait`);
  }

  /** Microseconds of script time a job. */
  async measure(round: number): Promise<number> {
    const { redis } = this;
    const due = Math.ceil(await redis.now()) + 1500;
    await this.producer.add(POPPED, () => due, { idPrefix: `r${round}-` });
    await eventually(async () => (await redis.now()) > due + 1, { every: 5 });
    const costs: number[] = [];
    for (let popped = 0; popped < POPPED; ) {
      const reply = await this.scripts.popDue(this.owned, { limit: BATCH, bytes: 1_000_000, prove: true });
      if (!('popped' in reply)) throw new Error('the clock leapt');
      popped += reply.popped;
      costs.push((reply.took * 1000) / reply.popped);
    }
    await redis.client.del(this.waitKey);
    // Of the calls: those during which the machine did something else stand out.
    return median(costs);
  }

  close(): Promise<void> {
    return this.producer.close();
  }
}
