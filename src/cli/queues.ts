import type { Command } from 'commander';
import { withAdmin } from './connect.js';
import { printJson, printTable, remark, utc } from './output.js';
import { addForecast } from './queues-forecast.js';
import { settingsOf } from './settings.js';

/** Queues as the timers know them: `carillon queues …`. */
export function addQueues(program: Command): void {
  const queues = program.command('queues').description('queues, and what waits in the timers for them');
  queues
    .command('list')
    .description('every queue with its counts, and why it is parked if it is broken')
    .action((_options, command: Command) => list(command));
  addForecast(queues);
}

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  const queues = await withAdmin(settings, (admin) => admin.queues());
  if (settings.json) return printJson({ queues });
  await printTable(
    ['queue', 'scheduled', 'paused', 'parked', 'waiting', 'held', 'schedules', 'broken'],
    queues.map(({ name, scheduled, paused, parked, waiting, held, schedules, broken }) => [
      name,
      ...[scheduled, paused, parked, waiting, held, schedules].map(String),
      broken === undefined ? '' : `${broken.reason} (since ${utc(broken.since)})`,
    ]),
  );
  if (queues.length === 0) remark('no queue has or had anything in the timers');
}
