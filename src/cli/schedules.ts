import type { Command } from 'commander';
import type { ListedJob } from '../client/admin-listing.js';
import type { ScheduleInfo } from '../client/schedule-info.js';
import { CarillonError } from '../domain/errors.js';
import type { StoredPolicies } from '../domain/schedule.js';
import { dataArgument, integerArgument, objectArgument } from './arguments.js';
import { withAdmin, withKnownQueue, withQueue } from './connect.js';
import { addExclusionOptions, type ExclusionFlags, toExclusions } from './exclusion-flags.js';
import { away, plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { addTimingOptions, type TimingFlags, timingText, toDefinition } from './schedule-timing.js';
import { addNext } from './schedules-next.js';
import { settingsOf } from './settings.js';

const UPSERT_EXAMPLES = `
Examples:
  carillon schedules upsert billing nightly --cron '30 2 * * *' --tz Europe/London --missed latest
  carillon schedules upsert health ping --every 15m --missed skip --name ping --data '{"url":"https://example.com"}'`;

/** What fires again and again: `carillon schedules …`. */
export function addSchedules(program: Command): void {
  const schedules = program.command('schedules').description('jobs that fire again and again');

  schedules
    .command('list [queue]')
    .description('schedules with their pending ticks, in no order')
    .option('--limit <count>', 'at most so many, 1 to 1000 (default: 100)')
    .option('--cursor <cursor>', 'go on where the page before ended')
    .action(list);

  addNext(schedules);

  schedules
    .command('get <queue> <id>')
    .description('one schedule: its definition, state and next ticks')
    .action((queue: string, id: string, _options, command: Command) => get(queue, id, command));

  addExclusionOptions(addTimingOptions(schedules.command('upsert <queue> <id>')))
    .description('create a schedule, or make the one of that id what is said here')
    .requiredOption('--missed <policy>', 'what becomes of ticks that nobody served: skip or latest')
    .option('--grace <duration>', 'how late a tick may be and still fire as if on time (default: 30s)')
    .option('--jitter <duration>', 'spread fire times by up to this')
    .option('--catchup-window <duration>', 'latest runs no tick older than this (default: 1d)')
    .option('--tag <word>', 'a word to find it by; may be given again', collect)
    .option('--name <text>', 'the name of each run (default: the schedule’s id)')
    .option('--data <json>', 'the payload of each run (default: {})')
    .option('--data-file <path>', 'the payload from a file; - is standard input')
    .option('--opts <json>', 'BullMQ’s options of each run: attempts, backoff, …')
    .addHelpText('after', UPSERT_EXAMPLES)
    .action(upsert);

  schedules
    .command('pause <queue> <id>')
    .description('keep a schedule from firing until it is resumed')
    .option('--note <text>', 'why, for whoever finds it')
    .action((queue: string, id: string, options: { note?: string }, command: Command) =>
      change(command, queue, id, 'paused', (handle) => handle.pause(options)),
    );

  schedules
    .command('resume <queue> <id>')
    .description('let a paused or suspended schedule fire again')
    .action((queue: string, id: string, _options, command: Command) =>
      change(command, queue, id, 'resumed', (handle) => handle.resume()),
    );

  schedules
    .command('delete <queue> <id>')
    .description('delete a schedule; runs that are in their queue already stay there')
    .option('--reason <text>', 'for the history')
    .action((queue: string, id: string, options: { reason?: string }, command: Command) =>
      change(command, queue, id, 'deleted', async (handle) => {
        if (!(await handle.delete(options))) throw notFound(queue, id);
      }),
    );
}

async function list(
  queue: string | undefined,
  options: { limit?: string; cursor?: string },
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  const limit = options.limit === undefined ? 100 : integerArgument(options.limit, 'limit', 1, 1000);
  const { cursor } = options;
  const page = await withAdmin(settings, (admin) =>
    admin.jobs({ kind: 'schedule', limit, ...(queue && { queue }), ...(cursor && { cursor }) }),
  );
  if (settings.json) {
    const schedules = page.items.map(({ data, kind, priority, scheduledFor, ...schedule }) => ({
      ...schedule,
      next: scheduledFor ?? null,
    }));
    return printJson({ schedules, cursor: page.cursor ?? null });
  }
  await printTable(['queue', 'id', 'state', 'when', 'next', '', 'note'], page.items.map(row));
  if (page.items.length === 0) remark('there are no schedules');
  if (page.cursor !== undefined) remark(`there is more: --cursor ${page.cursor}`);
}

function row(job: ListedJob): string[] {
  const when = job.definition === undefined ? '?' : timingText(job.definition);
  return [job.queue, job.id, job.state, when, utc(job.scheduledFor), away(job.scheduledFor), job.note ?? ''];
}

async function get(queue: string, id: string, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { info, next } = await withKnownQueue(settings, queue, async (q) => {
    const handle = q.schedules.get(id);
    const found = await handle.describe();
    if (found === undefined) throw notFound(queue, id);
    return { info: found, next: await handle.preview(5) };
  });
  if (settings.json) return printJson({ queue, ...info, preview: next });
  printInfo(queue, info);
  for (const { at, wallClock, notes } of next) {
    const remarks = notes.map(({ text }) => `  ${text}`).join('');
    printLine(`${''.padEnd(14)}${utc(at)}  ${wallClock}${remarks}`);
  }
}

function printInfo(queue: string, info: ScheduleInfo): void {
  const { definition, template } = info;
  const lines: [string, string | undefined][] = [
    ['queue', queue],
    ['id', info.id],
    ['state', info.state],
    ['note', info.note],
    ['when', timingText(definition)],
    ['policies', policiesText(definition)],
    ['fired', `${info.count} times, last ${utc(info.last)}`],
    ['pending', info.next === undefined ? 'none' : `${utc(info.next)}, fires ${utc(info.nextFireAt)}`],
    ['runs', `${template.name} ${JSON.stringify(template.data)} ${JSON.stringify(template.opts)}`],
    ...info.warnings.map((warning): [string, string] => ['warning', warning]),
    ['next', ''],
  ];
  for (const [field, value] of lines)
    if (value !== undefined) printLine(`${field.padEnd(14)}${plain(value)}`);
}

function policiesText({ missed, grace, jitter, catchupWindow, tags }: StoredPolicies): string {
  const parts: string[] = [`missed ${missed}`];
  for (const [name, value] of Object.entries({ grace, jitter, catchupWindow })) {
    if (value !== undefined) parts.push(`${name} ${value} ms`);
  }
  if (tags !== undefined) parts.push(`tags ${tags.join(', ')}`);
  return parts.join('; ');
}

interface UpsertFlags extends TimingFlags, ExclusionFlags {
  missed: 'skip' | 'latest';
  grace?: string;
  jitter?: string;
  catchupWindow?: string;
  tag?: string[];
  name?: string;
  data?: string;
  dataFile?: string;
  opts?: string;
}

async function upsert(queue: string, id: string, flags: UpsertFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { missed, grace, jitter, catchupWindow, tag: tags, name } = flags;
  const definition = {
    ...toDefinition(flags),
    ...toExclusions(flags),
    missed,
    grace,
    jitter,
    catchupWindow,
    tags,
  };
  const data = dataArgument(flags);
  const opts = flags.opts === undefined ? undefined : objectArgument(flags.opts, 'opts');
  const info = await withQueue(settings, queue, (q) =>
    q.schedules.upsert(id, definition, { name, data, opts }),
  );
  if (settings.json) return printJson({ queue, ...info });
  for (const warning of info.warnings) remark(`warning: ${warning}`);
  printLine(
    `${plain(id)} in ${queue}: ${timingText(info.definition)}, next ${utc(info.next)} (${away(info.next)})`,
  );
}

async function change(
  command: Command,
  queue: string,
  id: string,
  done: string,
  make: (handle: ReturnType<import('../client/queue.js').Queue['schedules']['get']>) => Promise<void>,
): Promise<void> {
  const settings = settingsOf(command);
  await withKnownQueue(settings, queue, (q) => make(q.schedules.get(id)));
  if (settings.json) return printJson({ queue, id, done });
  printLine(`${done} ${plain(id)} of ${queue}`);
}

function collect(value: string, known: string[] = []): string[] {
  return [...known, value];
}

function notFound(queue: string, id: string): CarillonError {
  return new CarillonError('NOT_FOUND', `the queue ${queue} has no schedule ${JSON.stringify(id)}`, {
    field: 'id',
    given: id,
    todo: 'Check queue and id; `carillon schedules list` shows all.',
  });
}
