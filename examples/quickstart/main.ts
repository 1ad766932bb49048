// The whole of Carillon on real input: real crontab files, 40,000 one-time jobs, a scheduler and a stock BullMQ worker in
// processes of their own, and a count at the end of what was lost, doubled or early. Run it by ./scripts/quickstart.sh.
import { parseArgs } from 'node:util';
import { Admin, Queue } from 'carillon';
import { Redis } from 'ioredis';
import { RedisClock } from '../../src/bench/redis-clock.js';
import { Child } from './child.js';
import { loadCrontabFiles } from './crontab-files.js';
import { addJobs, expectTicks } from './jobs.js';
import { type PrivateRedis, startPrivateRedis } from './private-redis.js';
import { Progress } from './progress.js';
import { resultTable } from './result-table.js';
import { Tally } from './tally.js';
import type { RunsMessage } from './worker.js';

/** Between the adding of jobs and the first that is due, ms. */
const LEAD = 4000;
/** Between the last of the spread jobs and the herd, ms. */
const PAUSE = 2000;
/** When nothing more has run for so long after everything was due, the rest is lost, ms. */
const PATIENCE = 20_000;

const values = options();
const jobs = wholeNumber('jobs', values.jobs);
const spreadOver = wholeNumber('seconds', values.seconds) * 1000;

let steps = 0;
const stops: (() => Promise<void> | void)[] = [];
let interrupted: (reason: Error) => void = () => undefined;
/** Rejects on Ctrl-C, and when a process that should be there dies. */
const interruption = new Promise<never>((_, reject) => {
  interrupted = reject;
});
interruption.catch(() => undefined);
process.once('SIGINT', () => interrupted(new Stopped(130)));
process.once('SIGTERM', () => interrupted(new Stopped(143)));

class Stopped extends Error {
  constructor(readonly exitCode: number) {
    super('stopped');
  }
}

try {
  process.exitCode = await Promise.race([run(), interruption]);
} catch (error) {
  if (!(error instanceof Stopped))
    console.error(`quickstart: ${error instanceof Error ? error.message : error}`);
  process.exitCode = error instanceof Stopped ? error.exitCode : 1;
} finally {
  for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  console.log('\nStopped everything that was started here.');
}
// What was interrupted may wait for a Redis that is gone by now.
process.exit();

async function run(): Promise<number> {
  const started = performance.now();
  step('Starting a Redis of its own: nothing here touches another one');
  const redis = await startPrivateRedis();
  stops.push(() => redis.stop());
  console.log(`  ${redis.url}, append-only file on, data in ${redis.dir} until the end; pid ${redis.pid}`);

  step('Starting a scheduler and a stock BullMQ worker, each in its own process');
  const tally = new Tally();
  const scheduler = await Child.start('scheduler', [], redis.url, interrupted);
  stops.push(() => scheduler.stop());
  const worker = await Child.start('worker', ['crontab', 'mail'], redis.url, interrupted, (message) => {
    const { queue, ids, startedAt } = message as RunsMessage;
    ids.forEach((id, i) => {
      tally.handled(queue, id, startedAt[i] ?? 0);
    });
  });
  stops.push(() => worker.stop());
  console.log(`  scheduler: pid ${scheduler.pid}; worker: pid ${worker.pid}, it does not know of Carillon`);

  const client = new Redis(redis.url, { maxRetriesPerRequest: null });
  const clock = await RedisClock.of(client);
  const crontab = new Queue('crontab', { connection: { url: redis.url } });
  const mail = new Queue('mail', { connection: { url: redis.url } });
  stops.push(async () => {
    clock.close();
    client.disconnect();
    await Promise.all([crontab.close(), mail.close()]);
  });

  step('Loading the crontab files of examples/crontabs as schedules');
  const fromFiles = await loadCrontabFiles(crontab);
  console.log(`  ${fromFiles.length} schedules stored; their runs only count here, no command is executed`);

  const firstAt = Math.ceil(clock.now() / 1000) * 1000 + LEAD;
  const herdAt = firstAt + spreadOver + PAUSE;
  step('Adding jobs');
  // Ticks end before the herd, which shares their worker and would show in their lag.
  const ends = { endDate: herdAt - 1000, missed: 'latest' } as const;
  const frequent = [
    await crontab.schedules.upsert('each-second', { cron: '* * * * * *', ...ends }),
    await crontab.schedules.upsert('each-5-seconds', { cron: '*/5 * * * * *', ...ends }),
    await crontab.schedules.upsert('each-700-ms', { every: 700, ...ends }),
  ];
  const spread = `spread over ${spreadOver / 1000} s`;
  const [herd, ticks] = ['herd at one instant', 'ticks of schedules'];
  for (const name of [spread, herd, ticks]) tally.group(name);
  await addJobs(mail, tally, herd, 'herd', jobs, () => herdAt);
  await addJobs(mail, tally, spread, 'spread', jobs, (i) => firstAt + Math.floor((i * spreadOver) / jobs));
  for (const info of [...fromFiles, ...frequent]) expectTicks(crontab, tally, ticks, info, ends.endDate);
  console.log(
    `  ${jobs.toLocaleString('en')} jobs due from ${time(firstAt)} on, over ${spreadOver / 1000} s`,
  );
  console.log(`  ${jobs.toLocaleString('en')} jobs due all at once at ${time(herdAt)}`);
  console.log('  three schedules that fire each second, each 5 s and each 700 ms until a second before');

  step('Watching them run');
  await untilAllRan(tally, clock, herdAt);

  step('The count');
  console.log(resultTable(tally.groups));
  const drained = tally.group(herd);
  const rate = drained.run / ((drained.lastStart - herdAt) / 1000);
  console.log(
    `  the herd drained at ${Math.round(rate).toLocaleString('en')} runs a second through one worker`,
  );
  console.log(`  all of it took ${Math.round((performance.now() - started) / 1000)} s`);
  const strangers = tally.unexpected.filter((run) => !isLaterTick(run, ends.endDate));
  if (strangers.length > 0)
    console.log(`  ${strangers.length} runs that nobody asked for, such as ${strangers[0]}`);
  const healthy = await examine(redis.url);
  const good = tally.good && strangers.length === 0 && healthy;
  console.log(good ? '  nothing was lost, doubled or early' : '  NOT GOOD: see above');
  if (values.keep) await keepRunning(redis);
  return good ? 0 : 1;
}

/** Shows progress until every expected run was handled, or nothing has come for long after all were due. */
async function untilAllRan(tally: Tally, clock: RedisClock, lastDue: number): Promise<void> {
  const progress = new Progress(tally.groups);
  stops.push(() => progress.stop());
  let lost = tally.lost;
  let changedAt = clock.now();
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (tally.lost !== lost) {
        lost = tally.lost;
        changedAt = clock.now();
      }
      // A moment more than needed: a run that comes twice shall be seen.
      const quiet = clock.now() - Math.max(changedAt, lastDue);
      if (quiet < (lost === 0 ? 1000 : PATIENCE)) return;
      clearInterval(timer);
      resolve();
    }, 100);
    stops.push(() => clearInterval(timer));
  });
  progress.stop();
}

/** The files' schedules go on firing after the runs that are counted. */
function isLaterTick(run: string, until: number): boolean {
  return run.startsWith('crontab ') && Number(run.slice(run.lastIndexOf('@') + 1)) > until;
}

/** Holds every record against its indexes, as `carillon doctor` does. */
async function examine(url: string): Promise<boolean> {
  const admin = new Admin({ connection: url });
  try {
    const { errors, findings } = await admin.doctor();
    console.log(`  carillon doctor finds ${errors === 0 ? 'nothing wrong' : `${errors} errors`}`);
    for (const finding of findings) console.log(`    ${JSON.stringify(finding)}`);
    return errors === 0;
  } finally {
    await admin.close();
  }
}

async function keepRunning({ url }: PrivateRedis): Promise<never> {
  console.log('\nLeft running, as --keep asks; the schedules of the files go on firing. To look at it:');
  for (const command of ['schedules list crontab', 'queues list', 'doctor']) {
    console.log(`  node dist/cli/main.js --redis ${url} ${command}`);
  }
  console.log(`To stop all of it and remove its data: Ctrl-C here, or kill ${process.pid}`);
  return interruption;
}

function options() {
  try {
    return parseArgs({
      options: {
        keep: { type: 'boolean', default: false },
        jobs: { type: 'string', default: '20000' },
        seconds: { type: 'string', default: '20' },
      },
    }).values;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(option: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  refuse(`--${option} must be a whole number above 0; '${text}' is not`);
}

function refuse(message: string): never {
  console.error(`quickstart: ${message}`);
  process.exit(2);
}

function time(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`;
}

function step(text: string): void {
  steps += 1;
  console.log(`\n[${steps}/6] ${text}`);
}
