// npm run bench -- <name> [--jobs n] [--rounds n] [--json]
//
// Carillon beside BullMQ's own delayed jobs on one private Redis, in turns. Figures of two runs, or of two machines, say
// little of each other; the ratio of one run does.
import { arch, cpus, release, type } from 'node:os';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { BenchRedis } from './bench-redis.js';
import { fireTimes } from './cron.js';
import { type BenchResult, SIDES } from './figures.js';
import { herd } from './herd.js';
import { idle } from './idle.js';
import { memory } from './memory.js';
import { pop } from './pop.js';
import { schedules } from './schedules.js';
import { steady } from './steady.js';
import { submit } from './submit.js';

interface Bench {
  readonly jobs: number;
  readonly rounds: number;
  readonly says: string;
  run(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult>;
}

const BENCHES: Record<string, Bench> = {
  submit: { jobs: 100_000, rounds: 5, says: 'bulk jobs a second', run: submit },
  memory: { jobs: 100_000, rounds: 3, says: 'bytes of Redis a pending job', run: memory },
  herd: { jobs: 100_000, rounds: 5, says: 'from due to the last handler, one stock worker', run: herd },
  steady: { jobs: 1000, rounds: 3, says: 'lag at 50 jobs a second', run: steady },
  pop: { jobs: 1_000_000, rounds: 9, says: 'what dispatch costs, by what is pending', run: pop },
  idle: { jobs: 1_000_000, rounds: 1, says: 'what an idle scheduler asks of Redis', run: idle },
  schedules: { jobs: 10_000, rounds: 1, says: 'schedules that fire together every 5 s', run: schedules },
  'fire-times': { jobs: 2_000_000, rounds: 7, says: 'cron arithmetic beside cron-parser', run: fireTimes },
};

const { bench, jobs, rounds, json } = options();
const redis = await BenchRedis.start();
const stop = () => redis.stop().finally(() => process.exit(130));
process.once('SIGINT', stop);
process.once('SIGTERM', stop);
try {
  const result = await bench.run(redis, jobs, rounds);
  console.log(json ? JSON.stringify(result) : await tableOf(bench, result));
} finally {
  await redis.stop();
}

async function tableOf(bench: Bench, result: BenchResult): Promise<string> {
  const server = await redis.client.info('server');
  const version = /redis_version:(\S+)/.exec(server)?.[1];
  const figures = [...new Set(SIDES.flatMap((side) => Object.keys(result[side])))];
  const table = new Table({
    head: [`${result.name}: ${bench.says}`, 'Carillon', 'BullMQ', 'Carillon / BullMQ'],
    colAligns: ['left', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const figure of figures) {
    const [ours, theirs] = [result.carillon[figure], result.bullmq[figure]];
    const ratio = ours === undefined || theirs === undefined ? '' : (ours / theirs).toPrecision(3);
    table.push([figure, ours ?? '', theirs ?? '', ratio]);
  }
  return [
    table.toString(),
    `${result.jobs} jobs, medians of ${result.rounds} rounds in turns; Redis ${version}, AOF everysec; Node ${process.version}, ` +
      `${cpus().length} cores, ${type()} ${release()} ${arch()}`,
  ].join('\n');
}

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        jobs: { type: 'string' },
        rounds: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    });
    const [name = '', ...more] = positionals;
    const bench = BENCHES[name];
    if (bench === undefined || more.length > 0) {
      throw new Error(`name one of ${Object.keys(BENCHES).join(', ')}; '${positionals.join(' ')}' is none`);
    }
    return {
      bench,
      jobs: wholeNumber('jobs', values.jobs) ?? bench.jobs,
      rounds: wholeNumber('rounds', values.rounds) ?? bench.rounds,
      json: values.json,
    };
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}`);
    console.error('Use: npm run bench -- <name> [--jobs n] [--rounds n] [--json]');
    process.exit(2);
  }
}

function wholeNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`--${option} must be a whole number above 0; '${text}' is not`);
}
