import type { Command } from 'commander';
import type { DeadFilter, DeadLetterDetails } from '../client/dead-letter.js';
import type { RequeueEdit } from '../client/dead-letters.js';
import type { DeadReason } from '../domain/dead-reason.js';
import { dataArgument, instantArgument, integerArgument } from './arguments.js';
import { confirmed } from './confirm.js';
import { withKnownQueue } from './connect.js';
import { refuseArgument, usageError } from './failure.js';
import { payloadOf } from './job-description.js';
import { away, inOneLine, plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { settingsOf } from './settings.js';

interface FilterFlags {
  name?: string;
  text?: string;
  reason?: string;
  from?: string;
  to?: string;
  source?: string;
  limit?: string;
}

interface ChangeFlags extends FilterFlags {
  all?: boolean;
  dryRun?: boolean;
  yes?: boolean;
}

const REQUEUE_HELP = `
It goes back into its queue with all its attempts; its payload stays as it is, byte for byte, unless --data gives another.
Then its checkpoint, which was the old payload's, goes, unless --keep-checkpoint says otherwise. What run.once and
claimEffect noted under its idempotency key stays.

Examples:
  carillon dead requeue emails order-5
  carillon dead requeue emails order-5 --data '{"to":"ann@example.org"}'
  carillon dead requeue emails --text ECONNREFUSED --from 2027-01-31T09:00:00Z --rate 20`;

/** Runs that used up their attempts: \`carillon dead …\`. */
export function addDead(program: Command): void {
  const dead = program.command('dead').description('dead letters: runs that have failed for good');

  addFilter(dead.command('list <queue>').description('the oldest first'))
    .option('--limit <count>', 'at most so many, 1 to 1000 (default: 100)')
    .action(list);

  dead
    .command('show <queue> <id>')
    .description('one: payload, error of each attempt, log, what it came from')
    .action(show);

  addFilter(
    dead.command('requeue <queue> [id]').description('back into the queue: one, or all that a filter means'),
  )
    .option('--all', 'all dead letters of the queue')
    .option('--data <json>', 'another payload; with an id')
    .option('--data-file <path>', 'another payload from a file; - is standard input')
    .option('--keep-checkpoint', 'its next attempt goes on from the checkpoint in spite of another payload')
    .option('--rate <count>', 'at most so many a second')
    .option('--limit <count>', 'at most so many')
    .option('--dry-run', 'show which, and change nothing')
    .option('--yes', 'do not ask')
    .addHelpText('after', REQUEUE_HELP)
    .action(requeue);

  addFilter(
    dead.command('discard <queue> [id]').description('remove for good: one, or all that a filter means'),
  )
    .option('--all', 'all dead letters of the queue')
    .option('--limit <count>', 'at most so many')
    .option('--dry-run', 'show which, and change nothing')
    .option('--yes', 'do not ask')
    .action(discard);
}

function addFilter(command: Command): Command {
  return command
    .option('--name <text>', 'those of this job name')
    .option('--text <text>', 'those with this text in their error or its causes')
    .option('--reason <word>', 'attempts, unrecoverable, stalled, timeout or unhandled')
    .option('--source <id>', 'those of this job or schedule')
    .option('--from <instant>', 'died then or later')
    .option('--to <instant>', 'died before then');
}

function filterOf(flags: FilterFlags): DeadFilter {
  const { name, text, reason, source, from, to } = flags;
  return {
    ...(name === undefined ? {} : { name }),
    ...(text === undefined ? {} : { text }),
    ...(reason === undefined ? {} : { reason: reason as DeadReason }),
    ...(source === undefined ? {} : { source }),
    ...(from === undefined ? {} : { from: instantArgument(from, 'from') }),
    ...(to === undefined ? {} : { to: instantArgument(to, 'to') }),
  };
}

async function list(queue: string, flags: FilterFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const limit = flags.limit === undefined ? 100 : integerArgument(flags.limit, 'limit', 1, 1000);
  const letters = await withKnownQueue(settings, queue, (q) => q.dead.list(filterOf(flags), { limit }));
  if (settings.json) return printJson({ queue, dead: letters });
  await printTable(
    ['id', 'name', 'died', '', 'reason', 'attempts', 'repeats', 'error'],
    letters.map((letter) => [
      letter.id,
      letter.name,
      utc(letter.diedAt),
      away(letter.diedAt),
      letter.reason,
      String(letter.attempts),
      letter.repeats,
      firstLine(letter.error),
    ]),
  );
  if (letters.length === 0) remark('no dead letters');
  if (letters.length === limit) remark('there may be more: give a filter or a larger --limit');
}

async function show(queue: string, id: string, _flags: unknown, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const letter = await withKnownQueue(settings, queue, async (q) => {
    const found = await q.dead.get(id);
    return { ...found, data: await payloadOf(q, found) };
  });
  if (settings.json) return printJson(letter);
  const { errors, logs, earlier, source, diedAt, startedAt, ...rest } = letter;
  const { starts, stalls, requeued, worker, token, checkpoint, ...own } = rest;
  const lines = {
    ...own,
    source: `${source.kind} ${source.id}, due ${utc(source.scheduledFor)}`,
    started: startedAt === undefined ? undefined : utc(startedAt),
    died: utc(diedAt),
    starts: `${starts}, stalls ${stalls}, requeued ${requeued}`,
    worker: worker && `${worker.id} on ${worker.host}, pid ${worker.pid}, token ${token}`,
    checkpoint,
  };
  for (const [field, value] of Object.entries(lines)) {
    if (value === undefined) continue;
    printLine(`${field.padEnd(12)}${inOneLine(value)}`);
  }
  errors.forEach((error, index) => {
    printLine(index === 0 ? 'the last attempt:' : 'the one before:');
    for (const line of error.split('\n')) printLine(`  ${plain(line)}`);
  });
  for (const death of earlier) {
    const line = `${utc(death.diedAt)} of ${death.reason} (${death.attempts}): ${firstLine(death.error)}`;
    printLine(`died before ${plain(line)}`);
  }
  for (const line of logs) printLine(`log         ${plain(line)}`);
}

function firstLine(error: string): string {
  return error.split('\n', 1)[0]?.slice(0, 80) ?? '';
}

async function requeue(
  queue: string,
  id: string | undefined,
  flags: ChangeFlags & { data?: string; dataFile?: string; keepCheckpoint?: boolean; rate?: string },
  command: Command,
): Promise<void> {
  const data = dataArgument(flags);
  const rate = flags.rate === undefined ? undefined : integerArgument(flags.rate, 'rate', 1, 1_000_000);
  for (const field of ['data', 'dataFile', 'keepCheckpoint'] as const) {
    if (id !== undefined || flags[field] === undefined) continue;
    const flag = { data: 'data', dataFile: 'data-file', keepCheckpoint: 'keep-checkpoint' }[field];
    refuseArgument(flag, flags[field], 'needs an id', 'Name the one to edit.');
  }
  const edit: RequeueEdit = {
    ...(data === undefined ? {} : { data }),
    ...(flags.keepCheckpoint === undefined ? {} : { keepCheckpoint: flags.keepCheckpoint }),
  };
  await change('requeue', 'requeued', queue, id, flags, command, {
    one: (q, one) => q.dead.requeue(one, edit),
    preview(letter) {
      const kept = data === undefined || flags.keepCheckpoint === true;
      const checkpoint = letter.checkpoint === undefined ? '' : `, checkpoint ${kept ? 'kept' : 'dropped'}`;
      return `payload ${data === undefined ? 'as it is' : data.text}${checkpoint}`;
    },
    many: (q, filter, options) =>
      q.dead.requeueAll(filter, { ...options, ...(rate === undefined ? {} : { rate }) }),
  });
}

async function discard(
  queue: string,
  id: string | undefined,
  flags: ChangeFlags,
  command: Command,
): Promise<void> {
  await change('discard', 'discarded', queue, id, flags, command, {
    one: (q, one) => q.dead.discard(one),
    preview: () => undefined,
    many: (q, filter, options) => q.dead.discardAll(filter, options),
  });
}

type Queue = Parameters<Parameters<typeof withKnownQueue>[2]>[0];

async function change(
  verb: string,
  done: string,
  queue: string,
  id: string | undefined,
  flags: ChangeFlags,
  command: Command,
  act: {
    one: (queue: Queue, id: string) => Promise<void>;
    /** What a dry run tells of one besides who it is. */
    preview: (letter: DeadLetterDetails) => string | undefined;
    many: (
      queue: Queue,
      filter: DeadFilter,
      options: { dryRun?: boolean; limit?: number },
    ) => ReturnType<Queue['dead']['discardAll']>;
  },
): Promise<void> {
  const settings = settingsOf(command);
  const named = filterOf(flags);
  const isNamed = Object.keys(named).length > 0;
  const filter = isNamed ? named : { all: true };
  if ((id === undefined) !== (isNamed || flags.all === true))
    throw usageError('give an id, or a filter, or --all');
  const limit =
    flags.limit === undefined ? {} : { limit: integerArgument(flags.limit, 'limit', 1, 1_000_000) };
  if (id !== undefined) {
    const applied = flags.dryRun !== true;
    const letter = await withKnownQueue(settings, queue, async (q) =>
      applied ? act.one(q, id) : q.dead.get(id),
    );
    if (settings.json) return printJson({ queue, applied, [done]: [id], skipped: [] });
    if (letter !== undefined) {
      printLine(`  ${plain(`${id}  ${letter.name}  ${letter.reason}  ${firstLine(letter.error)}`)}`);
      const more = act.preview(letter);
      if (more !== undefined) printLine(`  ${plain(more)}`);
      return printLine(`would have ${done} 1 in ${queue}`);
    }
    return printLine(`${done} ${plain(id)} in ${queue}`);
  }
  const { applied, changed, skipped } = await withKnownQueue(settings, queue, async (q) => {
    const meant = await act.many(q, filter, { ...limit, dryRun: true });
    if (!settings.json) for (const one of meant.changed) printLine(`  ${plain(one)}`);
    const goesOn =
      flags.dryRun !== true &&
      meant.changed.length > 0 &&
      (await confirmed(flags.yes === true, `${verb} ${meant.changed.length} dead letters of ${queue}?`));
    if (!goesOn) return { applied: false, ...meant };
    return { applied: true, ...(await act.many(q, filter, limit)) };
  });
  if (settings.json) return printJson({ queue, applied, [done]: changed, skipped });
  if (changed.length + skipped.length === 0) return remark('the filter means no dead letter');
  printLine(`${applied ? done : `would have ${done}`} ${changed.length} in ${queue}`);
  if (skipped.length > 0) remark(`${skipped.length} were gone or alive before their turn`);
}
