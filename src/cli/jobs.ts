import type { Command } from 'commander';
import type { ListedJob } from '../client/admin-listing.js';
import type { JobOptions } from '../client/job-options.js';
import type { Queue } from '../client/queue.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { type RecordState, STATES } from '../domain/states.js';
import { endOf } from '../redis/job-scripts.js';
import { statusError } from '../redis/status.js';
import { dataArgument, instantArgument, integerArgument, optsArgument } from './arguments.js';
import { withAdmin, withKnownQueue, withQueue } from './connect.js';
import { storedData } from './exact-json.js';
import { refuseArgument } from './failure.js';
import { describeJob } from './job-description.js';
import { changeJob, notFound, timeOf } from './jobs-change-one.js';
import { addJobChanges } from './jobs-changes.js';
import { addGraph } from './jobs-graph.js';
import { addHistory } from './jobs-history.js';
import { away, inOneLine, plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { settingsOf } from './settings.js';

const ADD_EXAMPLES = `
Examples:
  carillon jobs add emails send --data '{"to":"ann@example.com"}' --delay 10s
  carillon jobs add emails send --id order-5 --at 2027-01-31T09:12:00Z
  carillon jobs add emails send --data-file mail.json --opts '{"attempts":5,"backoff":1000}'
  carillon jobs add emails send --id order-5 --delay 1h --if-exists replace
  carillon jobs add emails remind --at 2027-01-31T09:00:00Z --deadline 2027-01-31T10:00:00Z`;

/** One-time jobs: `carillon jobs …`. */
export function addJobs(program: Command): void {
  const jobs = program.command('jobs').description('one-time jobs, while they wait for their time');

  jobs
    .command('add <queue> <name>')
    .description('add a job: into the timers when it is due later, into the BullMQ queue when it is due now')
    .option('--data <json>', 'the payload (default: {})')
    .option('--data-file <path>', 'the payload from a file; - is standard input')
    .option('--id <text>', 'the job’s id; adding it again does nothing (default: a new one)')
    .option('--delay <duration>', 'due so long from now by Redis’ clock: 10s, 5m, 1h30m, or ms')
    .option('--at <instant>', 'due then: 2027-01-31T09:12:00Z, or ms since 1970')
    .option('--deadline <instant>', 'too late for it to run: past this it ends as skipped (default: none)')
    .option('--if-exists <what>', 'keep or replace a job of this id that still waits (default: keep)')
    .option('--opts <json>', 'BullMQ’s options of a job: attempts, backoff, priority, removeOnComplete, …')
    .option('--request-id <text>', 'names this call: repeated with the same id it has its effect once')
    .addHelpText('after', ADD_EXAMPLES)
    .action(add);

  jobs
    .command('list [queue]')
    .description('jobs and schedules that stand in the timers, in no order')
    .option(
      '--state <states>',
      'only these: scheduled, paused, parked, waiting, held, suspended, ended; a comma between',
    )
    .option('--limit <count>', 'at most so many, 1 to 1000 (default: 100)')
    .option('--cursor <cursor>', 'go on where the page before ended')
    .addHelpText('after', '\nExample:\n  carillon jobs list emails --state paused,parked --limit 20')
    .action(list);

  jobs
    .command('get <queue> <id>')
    .description('one job, wherever it is: in the timers, in BullMQ, or set aside')
    .action((queue: string, id: string, _options, command: Command) => get(queue, id, command));

  addHistory(jobs);

  addJobChanges(jobs);
  addGraph(jobs);

  jobs
    .command('promote <queue> <id>')
    .description('put a waiting job into its queue now')
    .action((queue: string, id: string, _options, command: Command) =>
      changeJob(command, queue, id, { verb: 'promote', done: 'promoted' }, async (q) => {
        const job = await q.getJob(id);
        if (job === undefined) return refuseAbsent(q, id);
        await job.promote().catch((error: unknown) => refuseStanding(q, id, error));
        return undefined;
      }),
    );
}

/** Nobody holds a job of the id: it may be known how the last one ended. */
async function refuseAbsent(queue: Queue, id: string): Promise<never> {
  const { ended } = await queue.backend.scripts.get(queue.name, id);
  throw ended === undefined ? notFound(queue.name, id) : statusError('FINISHED', endOf(ended), 'id');
}

/** BullMQ refuses to promote what does not wait for a time, by an error of its own. */
async function refuseStanding(queue: Queue, id: string, error: unknown): Promise<never> {
  if (isCarillonError(error)) throw error;
  const state = await queue.getJobState(id);
  if (state === 'delayed') throw error;
  if (state === 'unknown') return refuseAbsent(queue, id);
  const dead = state === 'failed';
  throw new CarillonError('CONFLICT', `the job does not wait for its time: it is ${state}`, {
    field: 'id',
    given: id,
    todo: dead ? 'Put it back into its queue by `carillon dead requeue`.' : 'Nothing needs to be done.',
    cause: error,
  });
}

interface AddOptions {
  data?: string;
  dataFile?: string;
  id?: string;
  delay?: string;
  at?: string;
  deadline?: string;
  ifExists?: string;
  opts?: string;
  requestId?: string;
}

async function add(queue: string, name: string, options: AddOptions, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const opts: JobOptions = { ...(options.opts === undefined ? {} : optsArgument(options.opts)) };
  if (options.id !== undefined) opts.jobId = options.id;
  if (options.requestId !== undefined) opts.requestId = options.requestId;
  if (options.ifExists !== undefined) opts.ifExists = options.ifExists as 'keep' | 'replace';
  if (options.deadline !== undefined) opts.deadline = instantArgument(options.deadline, 'deadline');
  const time = timeOf(options);
  for (const field of Object.keys(time).length > 0 ? (['delay', 'at'] as const) : []) {
    if (opts[field] !== undefined)
      refuseArgument('opts', options.opts, `holds ${field} too`, 'Say once when it is due.');
  }
  Object.assign(opts, time);
  const data = dataArgument(options);
  await withQueue(settings, queue, async (q) => {
    const job = await q.add(name, data, opts);
    const { id, answer, scheduledFor } = job;
    if (settings.json) return printJson({ queue, id, name, answer, scheduledFor, due: utc(scheduledFor) });
    const kept = answer === 'existing' || answer === 'fired' ? '; nothing was added' : '';
    printLine(
      `${answer} ${plain(id ?? '')} in ${queue}, due ${utc(scheduledFor)} (${away(scheduledFor)})${kept}`,
    );
  });
}

interface ListFlags {
  state?: string;
  limit?: string;
  cursor?: string;
}

async function list(queue: string | undefined, options: ListFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const states = options.state?.split(',') as RecordState[] | undefined;
  for (const state of states ?? []) {
    const known = Object.keys(STATES);
    if (!known.includes(state))
      refuseArgument('state', state, `cannot be '${state}'`, `Write ${known.join(', ')}.`);
  }
  const limit = options.limit === undefined ? 100 : integerArgument(options.limit, 'limit', 1, 1000);
  const { cursor } = options;
  const page = await withAdmin(settings, (admin) =>
    admin.jobs({ limit, ...(queue && { queue }), ...(states && { states }), ...(cursor && { cursor }) }),
  );
  if (settings.json) return printJson({ jobs: page.items.map(listedJson), cursor: page.cursor ?? null });
  await printTable(
    ['queue', 'id', 'kind', 'name', 'state', 'due', '', 'repeats', 'note'],
    page.items.map((job) => [
      job.queue,
      job.id,
      job.kind,
      job.name,
      job.state,
      utc(job.scheduledFor),
      away(job.scheduledFor),
      job.repeats ?? '',
      job.note ?? '',
    ]),
  );
  if (page.items.length === 0) remark('nothing stands in the timers');
  if (page.cursor !== undefined) remark(`there is more: --cursor ${page.cursor}`);
}

function listedJson({ data, ...job }: ListedJob): Record<string, unknown> {
  return { ...job, data: storedData(data) };
}

async function get(queue: string, id: string, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const found = await withKnownQueue(settings, queue, (q) => describeJob(q, id));
  if (found === undefined) throw notFound(queue, id);
  if (settings.json) return printJson(found);
  for (const [field, value] of Object.entries(found)) {
    if (value === undefined || value === null) continue;
    printLine(`${field.padEnd(14)}${inOneLine(value)}`);
  }
}
