import type { Command } from 'commander';
import type { CalendarChange, CalendarInfo } from '../client/calendars.js';
import { calendarLine } from '../domain/calendar.js';
import { withAdmin } from './connect.js';
import { readSource } from './import-sources.js';
import { plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { type Settings, settingsOf } from './settings.js';

const SET_HELP = `
The file holds one date a line, 2026-12-25, or a run of dates, 2026-12-24..2026-12-26; behind # stands what people call
it. Dates are those of each schedule's own zone. Schedules that name the calendar have their next ticks computed again.

Examples:
  carillon calendars set uk-holidays holidays.txt
  printf '2026-12-25  # Christmas Day\\n' | carillon calendars set uk-holidays -`;

/** Named lists of dates that schedules leave out: `carillon calendars …`. */
export function addCalendars(program: Command): void {
  const calendars = program.command('calendars').description('named lists of dates that schedules leave out');
  calendars
    .command('list')
    .description('every calendar with its version and span')
    .action((_options, command: Command) => list(command));
  calendars
    .command('get <name>')
    .description('the dates of a calendar, as a file that set reads')
    .action((name: string, _options, command: Command) => get(name, command));
  calendars
    .command('set <name> <file>')
    .description('store a calendar, or replace its dates; - is standard input')
    .addHelpText('after', SET_HELP)
    .action((name: string, file: string, _options, command: Command) => set(name, file, command));
  calendars
    .command('delete <name>')
    .description('delete a calendar that no schedule names')
    .option('--force', 'also one that schedules name: they are suspended')
    .action((name: string, options: { force?: boolean }, command: Command) => remove(name, options, command));
}

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  const calendars = await withAdmin(settings, (admin) => admin.calendars.list());
  if (settings.json) {
    return printJson({
      calendars: calendars.map(({ entries, ...calendar }) => ({ ...calendar, entries: entries.length })),
    });
  }
  await printTable(
    ['calendar', 'version', 'entries', 'first', 'last', 'changed'],
    calendars.map(({ name, version, entries, updatedAt }) => [
      name,
      String(version),
      String(entries.length),
      entries[0]?.from ?? '-',
      lastDate(entries),
      utc(updatedAt),
    ]),
  );
  if (calendars.length === 0) remark('there is no calendar; carillon calendars set <name> <file> makes one');
}

async function get(name: string, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const calendar = await withAdmin(settings, (admin) => admin.calendars.get(name));
  if (settings.json) return printJson(calendar);
  remark(`${name}, version ${calendar.version}, changed ${utc(calendar.updatedAt)}`);
  for (const entry of calendar.entries) printLine(plain(calendarLine(entry)));
}

async function set(name: string, file: string, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { text } = readSource(file);
  tell(settings, await withAdmin(settings, (admin) => admin.calendars.set(name, text)), 'set');
}

async function remove(name: string, options: { force?: boolean }, command: Command): Promise<void> {
  const settings = settingsOf(command);
  tell(settings, await withAdmin(settings, (admin) => admin.calendars.delete(name, options)), 'deleted');
}

function tell({ json }: Settings, change: CalendarChange, done: string): void {
  if (json) {
    printJson(change);
    return;
  }
  const { name, version, changed, schedules } = change;
  const what = changed
    ? `${done} ${name}, now version ${version}`
    : `${name} is so already, version ${version}`;
  printLine(schedules === 0 ? what : `${what}; the next ticks of ${schedules} schedules are computed again`);
}

function lastDate(entries: CalendarInfo['entries']): string {
  return (
    entries
      .map(({ to }) => to)
      .sort()
      .at(-1) ?? '-'
  );
}
