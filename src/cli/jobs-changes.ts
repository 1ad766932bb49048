import type { Command } from 'commander';
import type { JobFilter, JobPlace, JobVerb } from '../client/job-control-many.js';
import type { JobOptions } from '../client/job-options.js';
import type { Queue } from '../client/queue.js';
import { dataArgument, durationArgument, integerArgument, objectArgument } from './arguments.js';
import { confirmed } from './confirm.js';
import { withKnownQueue } from './connect.js';
import { refuseArgument, usageError } from './failure.js';
import { changeJob, timeOf } from './jobs-change-one.js';
import { plain, printJson, printLine, remark } from './output.js';
import { settingsOf } from './settings.js';

interface ManyFlags {
  state?: string;
  name?: string;
  text?: string;
  limit?: string;
  dryRun?: boolean;
  yes?: boolean;
  reason?: string;
  note?: string;
  delay?: string;
  at?: string;
}

const DONE: Record<JobVerb, string> = {
  cancel: 'cancelled',
  pause: 'paused',
  resume: 'resumed',
  reschedule: 'rescheduled',
};

/** `carillon jobs cancel|pause|resume|reschedule|update`: one job by its id, wherever it is, or many by a filter. */
export function addJobChanges(jobs: Command): void {
  one(jobs, 'cancel', 'take a job back, wherever it is; its id is free again').option(
    '--reason <text>',
    'for the history',
  );
  one(jobs, 'pause', 'keep a job from running until it is resumed; out of its queue, if it is there').option(
    '--note <text>',
    'why, for whoever finds it',
  );
  one(jobs, 'resume', 'let a paused job go on; at once when its time has passed');
  one(jobs, 'reschedule', 'make a waiting job due at another time')
    .option('--delay <duration>', 'so long from now by Redis’ clock')
    .option('--at <instant>', 'then; for one job')
    .addHelpText('after', '\nExample:\n  carillon jobs reschedule emails order-5 --delay 2h');
  jobs
    .command('update <queue> <id>')
    .description('change what a job will be, while no worker has it')
    .option('--name <text>', 'its name')
    .option('--data <json>', 'its payload')
    .option('--data-file <path>', 'its payload from a file; - is standard input')
    .option('--opts <json>', 'all its options anew: attempts, backoff, priority, …')
    .action(update);
}

function one(jobs: Command, verb: JobVerb, description: string): Command {
  return jobs
    .command(`${verb} <queue> [id]`)
    .description(description)
    .option(
      '--state <states>',
      'instead of an id: those that are scheduled, paused, parked, waiting, held, dispatched, retrying, running; a comma between',
    )
    .option('--name <text>', 'those of this name')
    .option('--text <text>', 'those with this text in id or name')
    .option('--limit <count>', 'at most so many of them (default: 10000)')
    .option('--dry-run', 'show which, and change nothing')
    .option('--yes', 'do not ask')
    .action((queue: string, id: string | undefined, flags: ManyFlags, command: Command) =>
      id === undefined ? many(verb, queue, flags, command) : single(verb, queue, id, flags, command),
    );
}

async function single(
  verb: JobVerb,
  queue: string,
  id: string,
  flags: ManyFlags,
  command: Command,
): Promise<void> {
  if (filterOf(flags) !== undefined) throw usageError('give an id or a filter, not both');
  const { delay, at } = timeOf(flags as { delay?: string; at?: string });
  if (verb === 'reschedule' && delay === undefined && at === undefined)
    refuseArgument('delay', undefined, 'or at is needed', 'Give --delay 2h.');
  const { reason, note } = flags;
  const change: Record<JobVerb, (q: Queue) => ReturnType<Queue['cancel']>> = {
    cancel: (q) => q.cancel(id, reason === undefined ? {} : { reason }),
    pause: (q) => q.pauseJob(id, note === undefined ? {} : { note }),
    resume: (q) => q.resumeJob(id),
    reschedule: (q) => (delay === undefined ? q.rescheduleJob(id, Number(at)) : q.changeDelay(id, delay)),
  };
  await changeJob(command, queue, id, DONE[verb], change[verb]);
}

async function many(verb: JobVerb, queue: string, flags: ManyFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const filter = filterOf(flags);
  if (filter === undefined) throw usageError('an id is needed, or a filter: --state, --name or --text');
  if (flags.at !== undefined) refuseArgument('at', flags.at, 'is for one job', 'Give --delay.');
  const { dryRun = false, yes = false, reason, note } = flags;
  const options = {
    ...(reason === undefined ? {} : { reason }),
    ...(note === undefined ? {} : { note }),
    ...(flags.delay === undefined ? {} : { delay: durationArgument(flags.delay, 'delay') }),
    ...(flags.limit === undefined ? {} : { limit: integerArgument(flags.limit, 'limit', 1, 100_000) }),
  };
  const { applied, jobs, more } = await withKnownQueue(settings, queue, async (q) => {
    const meant = await q.changeJobs(verb, filter, { ...options, dryRun: true });
    meant.jobs.sort((a, b) => (a.id < b.id ? -1 : 1));
    if (!settings.json) for (const { id, state } of meant.jobs) printLine(`  ${plain(id)} (${state})`);
    const goesOn =
      !dryRun &&
      meant.jobs.length > 0 &&
      (await confirmed(yes, `${verb} ${meant.jobs.length} jobs of ${queue}?`));
    if (!goesOn) return { applied: false, ...meant };
    // What came since was not shown to anybody.
    const shown = { ...filter, ids: meant.jobs.map(({ id }) => id) };
    return { applied: true, ...(await q.changeJobs(verb, shown, options)), more: meant.more };
  });
  const refused = jobs.filter(({ problem }) => problem !== undefined);
  if (settings.json) printJson({ queue, verb, dryRun, applied, jobs, more });
  else {
    for (const { id, problem } of refused) printLine(`  ! ${plain(id)}: ${plain(problem ?? '')}`);
    if (applied) printLine(`${DONE[verb]} ${jobs.filter(({ done }) => done).length} jobs of ${queue}`);
    else if (jobs.length === 0) remark('the filter means no job');
    else remark(`${dryRun ? 'a dry run of ' : ''}${jobs.length} jobs: nothing was written`);
    if (more) remark('the filter means more jobs: raise --limit, or do it again');
  }
  if (refused.length > 0) process.exitCode = 1;
}

function filterOf({ state, name, text }: ManyFlags): JobFilter | undefined {
  if (state === undefined && name === undefined && text === undefined) return undefined;
  return {
    ...(state === undefined ? {} : { states: state.split(',') as JobPlace[] }),
    ...(name === undefined ? {} : { name }),
    ...(text === undefined ? {} : { text }),
  };
}

async function update(
  queue: string,
  id: string,
  flags: { name?: string; data?: string; dataFile?: string; opts?: string },
  command: Command,
): Promise<void> {
  const { name, data, dataFile, opts } = flags;
  const change = {
    ...(name === undefined ? {} : { name }),
    ...(data === undefined && dataFile === undefined ? {} : { data: dataArgument(flags) }),
    ...(opts === undefined ? {} : { opts: objectArgument(opts, 'opts') as JobOptions }),
  };
  if (Object.keys(change).length === 0)
    throw usageError('nothing is to be changed: give --name, --data or --opts');
  await changeJob(command, queue, id, 'updated', (q) => q.updateJob(id, change));
}
