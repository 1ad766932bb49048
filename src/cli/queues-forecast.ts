import type { Command } from 'commander';
import type { TimersForecast } from '../client/forecast.js';
import { formatDuration } from '../domain/durations.js';
import type { QueueLoad } from '../domain/forecast.js';
import type { Peak } from '../domain/forecast-peaks.js';
import { integerArgument } from './arguments.js';
import { withAdmin } from './connect.js';
import { plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { settingsOf } from './settings.js';

const HELP = `
Counts what schedules and one-time jobs will fire, minute by minute, and names the minutes with far more than the rest:
what fires then, and the jitter that would spread it. Overlap, gates and pauses to come are not foreseen.

Examples:
  carillon queues forecast
  carillon queues forecast --queue billing --hours 48 --peaks 10`;

const COLUMNS = 48;
const BARS = ' ▁▂▃▄▅▆▇█';
const MINUTE_MS = 60_000;

interface Flags {
  hours?: string;
  queue?: string;
  peaks?: string;
}

/** `carillon queues forecast`. */
export function addForecast(queues: Command): void {
  queues
    .command('forecast')
    .description('what will fire over the next hours, and its peaks')
    .option('--hours <count>', 'how far to look, 1 to 168 (default: 24)')
    .option('--queue <name>', 'only this queue')
    .option('--peaks <count>', 'how many peaks to name, 0 to 100 (default: 5)')
    .addHelpText('after', HELP)
    .action(forecast);
}

async function forecast(flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const options = {
    hours: flags.hours === undefined ? undefined : integerArgument(flags.hours, 'hours', 1, 168),
    queue: flags.queue,
    peaks: flags.peaks === undefined ? undefined : integerArgument(flags.peaks, 'peaks', 0, 100),
  };
  const found = await withAdmin(settings, (admin) => admin.forecast(options));
  if (settings.json) return printJson(found);
  await printForecast(found);
}

async function printForecast(found: TimersForecast): Promise<void> {
  const { from, to, schedules, oneTime, overdue, sampled, queues, peaks, problems } = found;
  const span = formatDuration(to - from);
  printLine(`${span} from ${utc(from)}: ${number(schedules)} schedules, ${number(oneTime)} one-time jobs`);
  if (sampled < 1) remark(`the one-time jobs are scaled up from ${Math.round(sampled * 100)} % of them`);
  if (overdue > 0) remark(`${number(overdue)} timers are overdue; no minute holds them`);
  for (const problem of problems) remark(`not foreseen: ${plain(problem)}`);
  if (queues.length === 0) {
    remark('nothing will fire');
    return;
  }
  const minutes = (to - from) / MINUTE_MS;
  const perColumn = Math.ceil(minutes / COLUMNS);
  printLine();
  await printTable(
    [
      'queue',
      'firings',
      'a minute',
      'busiest minute',
      'firings',
      `busiest minute of each ${formatDuration(perColumn * MINUTE_MS)}`,
    ],
    queues.map((load) => [
      load.queue,
      number(load.total),
      average(load.total / minutes),
      load.total === 0 ? '-' : utc(load.busiest.at),
      number(load.busiest.count),
      `|${histogram(load, perColumn)}|`,
    ]),
  );
  printLine();
  if (peaks.length === 0) printLine('no minute has far more than the others');
  else await printPeaks(peaks);
}

async function printPeaks(peaks: readonly Peak[]): Promise<void> {
  await printTable(
    ['peak', 'queue', 'firings', 'with jitter', 'what fires'],
    peaks.map(({ at, queue, count, withJitter, contributors }) => [
      utc(at),
      queue,
      number(count),
      withJitter === undefined ? '-' : `${number(withJitter.count)} by ${formatDuration(withJitter.jitter)}`,
      contributors.map(({ what, count: firings }) => `${number(firings)} × ${what}`).join('; '),
    ]),
  );
}

/** The highest minute of each column, in eighths of the queue's highest; what is not nothing shows. Pure. */
export function histogram(
  { counts, busiest }: Pick<QueueLoad, 'counts' | 'busiest'>,
  perColumn: number,
): string {
  let bars = '';
  for (let i = 0; i < counts.length; i += perColumn) {
    const highest = Math.max(...counts.slice(i, i + perColumn));
    bars += BARS[busiest.count === 0 ? 0 : Math.ceil((highest / busiest.count) * (BARS.length - 1))] ?? '█';
  }
  return bars;
}

function average(value: number): string {
  return value >= 10 || value === 0 ? number(Math.round(value)) : value.toFixed(value < 0.1 ? 3 : 1);
}

/** `1,234,567` */
function number(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 });
}
