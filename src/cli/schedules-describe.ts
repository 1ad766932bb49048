import type { Command } from 'commander';
import type { ScheduleDescription, ScheduleRunRow } from '../client/schedule-description.js';
import { scheduleNotFound } from '../client/schedule-not-found.js';
import { formatDuration } from '../domain/durations.js';
import { tickRunId } from '../domain/ids.js';
import type { PreviewedTime } from '../domain/preview.js';
import type { ScheduleRun } from '../redis/record.js';
import { integerArgument } from './arguments.js';
import { withKnownQueue } from './connect.js';
import { away, plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { retriesOf } from './retries-text.js';
import { timingText } from './schedule-timing.js';
import { settingsOf } from './settings.js';

/** So many open or waiting runs are named. */
const MOST_RUNS = 5;

/** `carillon schedules describe` and `carillon schedules runs`. */
export function addDescribe(schedules: Command): void {
  schedules
    .command('describe <queue> <id>')
    .alias('get')
    .description('one schedule: its policies in words, why it stands still, what comes and what was')
    .action(describe);

  schedules
    .command('runs <queue> <id>')
    .description('its ledger, oldest first: what became of each of its last ticks, with BullMQ’s outcome')
    .option('--limit <count>', 'the newest so many, 1 to 255 (default: all that are kept)')
    .action(runs);
}

async function describe(queue: string, id: string, _flags: object, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const found = await withKnownQueue(settings, queue, (q) => q.schedules.get(id).describe());
  if (found === undefined) throw scheduleNotFound(queue, id);
  if (settings.json) return printJson({ queue, ...found });
  for (const [field, value] of linesOf(queue, found)) printLine(`${field.padEnd(14)}${plain(value)}`);
}

/** What is printed: a word before each first line of a kind, none before the lines that go on. */
function linesOf(queue: string, found: ScheduleDescription): [string, string][] {
  const { definition, template, words, lateness } = found;
  const lines: [string, string[]][] = [
    ['queue', [queue]],
    ['id', [found.id]],
    ['state', [found.state]],
    ['note', found.note === undefined ? [] : [found.note]],
    ['when', [timingText(definition)]],
    ['policies', [...words, lateness]],
    ['tags', definition.tags === undefined ? [] : [definition.tags.join(', ')]],
    ['each run', [`${template.name} ${JSON.stringify(template.data)} ${JSON.stringify(template.opts)}`]],
    ['retries', [retriesOf(template.opts)]],
    ['repeats', [found.repeats]],
    ['fired', [`${found.count} ${found.count === 1 ? 'time' : 'times'}, last tick ${utc(found.last)}`]],
    ['troubles', troublesOf(found)],
    ['open runs', runsText(found.id, found.open)],
    ['waiting runs', runsText(found.id, found.waiting)],
    ['warning', [...found.warnings]],
    ['pending', [found.next === undefined ? 'none' : `${utc(found.next)}, fires ${utc(found.nextFireAt)}`]],
    ['next', found.upcoming.map(upcomingText)],
    ['last', found.recent.map(recentText)],
  ];
  return lines.flatMap(([field, texts]) =>
    texts.map((text, i): [string, string] => [i === 0 ? field : '', text]),
  );
}

function troublesOf({ skips, failures }: ScheduleDescription): string[] {
  return [
    ...(skips > 0 ? [`${skips} ticks in a row were skipped`] : []),
    ...(failures > 0 ? [`${failures} runs in a row failed`] : []),
  ];
}

function runsText(id: string, runs: readonly ScheduleRun[]): string[] {
  const shown = runs
    .slice(0, MOST_RUNS)
    .map(({ scheduledFor, suffix, since }) => `${tickRunId(id, scheduledFor)}${suffix}, since ${utc(since)}`);
  return runs.length > MOST_RUNS ? [...shown, `and ${runs.length - MOST_RUNS} more`] : shown;
}

function upcomingText({ at, fireAt, wallClock, notes, excluded = [] }: PreviewedTime): string {
  const remarks = [...excluded, ...notes].map(({ text }) => `  ${text}`).join('');
  const fires = fireAt === at ? '' : `, fires ${formatDuration(fireAt - at)} later`;
  return `${utc(at)}  ${wallClock}${fires}${remarks}`;
}

function recentText({ scheduledFor, what, reason, lateBy, outcome }: ScheduleRunRow): string {
  const late = lateBy === undefined ? '' : `, ${formatDuration(lateBy)} late`;
  const end = outcome === undefined ? '' : `: ${outcome}`;
  return `${utc(scheduledFor)}  ${what}${reason === '' ? '' : ` (${reason})`}${late}${end}`;
}

async function runs(queue: string, id: string, flags: { limit?: string }, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const limit = flags.limit === undefined ? undefined : integerArgument(flags.limit, 'limit', 1, 255);
  const rows = await withKnownQueue(settings, queue, async (q) => {
    const handle = q.schedules.get(id);
    const found = await handle.runs(limit);
    if (found.length === 0 && (await handle.describe()) === undefined) throw scheduleNotFound(queue, id);
    return found;
  });
  if (settings.json) return printJson({ queue, id, runs: rows });
  await printTable(
    ['tick', 'what', 'reason', 'late by', 'outcome', 'run', 'decided'],
    rows.map(({ scheduledFor, what, reason, lateBy, outcome, runId, at }) => [
      utc(scheduledFor),
      what,
      reason,
      lateBy === undefined ? '' : formatDuration(lateBy),
      outcome ?? '',
      runId ?? '',
      away(at),
    ]),
  );
  if (rows.length === 0) remark('no tick of it was due yet');
}
