import type { Command } from 'commander';
import type { JobChange } from '../client/job-change.js';
import type { ChangeJobsOptions, JobVerb } from '../client/job-control-many.js';
import type { JobFilter, JobPlace } from '../client/job-filter.js';
import type { Queue } from '../client/queue.js';
import { dataArgument, durationArgument, integerArgument, optsArgument } from './arguments.js';
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

interface UpdateFlags {
  name?: string;
  data?: string;
  dataFile?: string;
  opts?: string;
  ofName?: string;
}

const DONE: Record<JobVerb, string> = {
  cancel: 'cancelled',
  pause: 'paused',
  resume: 'resumed',
  reschedule: 'rescheduled',
  update: 'updated',
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
  const updating = jobs
    .command('update <queue> [id]')
    .description('change what a job will be, while no worker has it')
    .option('--name <text>', 'its name')
    .option('--data <json>', 'its payload')
    .option('--data-file <path>', 'its payload from a file; - is standard input')
    .option('--opts <json>', 'options to change: attempts, backoff, priority, …; null takes one away');
  filtered(updating, '--of-name').action(update);
}

function one(jobs: Command, verb: Exclude<JobVerb, 'update'>, description: string): Command {
  const command = jobs.command(`${verb} <queue> [id]`).description(description);
  return filtered(command, '--name').action(
    (queue: string, id: string | undefined, flags: ManyFlags, command: Command) =>
      id === undefined
        ? many(verb, queue, filterOf(flags), flags, extrasOf(flags), command)
        : single(verb, queue, id, flags, command),
  );
}

/** The flags that mean many jobs instead of one. */
function filtered(command: Command, nameFlag: string): Command {
  return command
    .option(
      '--state <states>',
      'instead of an id: those that are scheduled, paused, parked, waiting, held, dispatched, retrying, running; a comma between',
    )
    .option(`${nameFlag} <text>`, 'those of this name')
    .option('--text <text>', 'those with this text in id or name')
    .option('--limit <count>', 'at most so many of them (default: 10000)')
    .option('--dry-run', 'show which, and change nothing')
    .option('--yes', 'do not ask');
}

async function single(
  verb: Exclude<JobVerb, 'update'>,
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
  const change: Record<typeof verb, (q: Queue) => ReturnType<Queue['cancel']>> = {
    cancel: (q) => q.cancel(id, reason === undefined ? {} : { reason }),
    pause: (q) => q.pauseJob(id, note === undefined ? {} : { note }),
    resume: (q) => q.resumeJob(id),
    reschedule: (q) => (delay === undefined ? q.rescheduleJob(id, Number(at)) : q.changeDelay(id, delay)),
  };
  await changeJob(command, queue, id, { verb, done: DONE[verb] }, change[verb]);
}

function extrasOf({ reason, note, delay, at }: ManyFlags): ChangeJobsOptions {
  if (at !== undefined) refuseArgument('at', at, 'is for one job', 'Give --delay.');
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(note === undefined ? {} : { note }),
    ...(delay === undefined ? {} : { delay: durationArgument(delay, 'delay') }),
  };
}

async function many(
  verb: JobVerb,
  queue: string,
  filter: JobFilter | undefined,
  { limit, dryRun = false, yes = false }: ManyFlags,
  extras: ChangeJobsOptions,
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  if (filter === undefined) throw usageError('an id is needed, or a filter: by state, name or text');
  const options = {
    ...extras,
    ...(limit === undefined ? {} : { limit: integerArgument(limit, 'limit', 1, 100_000) }),
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
    if (applied) {
      const asked = jobs.filter((job) => job.asked).length;
      const done = jobs.filter((job) => job.done).length - asked;
      if (done > 0 || asked === 0) printLine(`${DONE[verb]} ${done} jobs of ${queue}`);
      if (asked > 0) printLine(`asked the workers to ${verb} ${asked} jobs of ${queue}; they may end first`);
    } else if (jobs.length === 0) remark('the filter means no job');
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
  id: string | undefined,
  flags: UpdateFlags & ManyFlags,
  command: Command,
): Promise<void> {
  const { name, data, dataFile, opts, ofName, ...rest } = flags;
  const change: JobChange<unknown, string> = {
    ...(name === undefined ? {} : { name }),
    ...(data === undefined && dataFile === undefined ? {} : { data: dataArgument(flags) }),
    ...(opts === undefined ? {} : { opts: optsArgument(opts) }),
  };
  if (Object.keys(change).length === 0)
    throw usageError('nothing is to be changed: give --name, --data or --opts');
  const filter = filterOf({ ...rest, ...(ofName === undefined ? {} : { name: ofName }) });
  if (id === undefined) return many('update', queue, filter, rest, { change }, command);
  if (filter !== undefined) throw usageError('give an id or a filter, not both');
  await changeJob(command, queue, id, { verb: 'update', done: DONE.update }, (q) => q.updateJob(id, change));
}
