import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { BenchRedis } from '../../src/bench/bench-redis.js';
import { type BenchResult, roundFigure, say } from '../../src/bench/figures.js';
import { startScheduler } from '../../src/bench/processes.js';
import { Producer } from '../../src/bench/producers.js';

const DAY = 86_400_000;
const SETTLE = 3000;
const WATCHED = 10_000;

/**
 * What an idle scheduler with `jobs` pending asks of Redis: commands a second that came over its connections, as MONITOR
 * shows them, and commands a second as INFO counts them, those inside scripts included.
 */
export async function idle(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  say(`adding ${jobs} jobs that are due in a day`);
  const producer = new Producer('carillon', redis.url);
  const due = Date.now() + DAY;
  await producer.add(jobs, () => due);
  await producer.close();
  const scheduler = await startScheduler(redis.url);
  try {
    await sleep(SETTLE);
    const sent = await countSent(redis.url, await addressesOf(redis));
    const processed = () => redis.info('stats', 'total_commands_processed');
    const before = await processed();
    await sleep(WATCHED * rounds);
    // One of the two questions is counted too.
    const all = (await processed()) - before - 1;
    const seconds = (WATCHED * rounds) / 1000;
    const carillon = {
      commandsSentPerSecond: roundFigure(sent.stop() / seconds),
      commandsByInfoPerSecond: roundFigure(all / seconds),
    };
    return { name: 'idle', jobs, rounds, carillon, bullmq: {}, ratio: null };
  } finally {
    await scheduler.stop();
  }
}

/** Where the scheduler's connections come from. */
async function addressesOf(redis: BenchRedis): Promise<Set<string>> {
  const clients = (await redis.client.client('LIST')) as string;
  const lines = clients.split('\n').filter((line) => line.includes(' name=carillon:'));
  const addresses = lines.flatMap((line) => / addr=(\S+)/.exec(line)?.[1] ?? []);
  if (addresses.length === 0) throw new Error('no connection of the scheduler was found');
  return new Set(addresses);
}

/** Counts the commands that come from these addresses, until it is stopped. */
async function countSent(url: string, addresses: ReadonlySet<string>) {
  const watcher = new Redis(url);
  const monitor = await watcher.monitor();
  let sent = 0;
  monitor.on('monitor', (_time: string, _args: string[], source: string) => {
    if (addresses.has(source)) sent++;
  });
  return {
    stop: () => {
      monitor.disconnect();
      watcher.disconnect();
      return sent;
    },
  };
}
