import type { Command } from 'commander';
import { withAdmin } from './connect.js';
import { refuseArgument } from './failure.js';
import { plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { addForecast } from './queues-forecast.js';
import { settingsOf } from './settings.js';

/** Queues as the timers know them: `carillon queues …`. */
export function addQueues(program: Command): void {
  const queues = program.command('queues').description('queues, and what waits in the timers for them');
  queues
    .command('list')
    .description('every queue with its counts, and why it is parked if it is broken')
    .action((_options, command: Command) => list(command));
  for (const verb of ['pause', 'resume'] as const) {
    queues
      .command(`${verb} [queue]`)
      .description(
        verb === 'pause' ? 'dispatch and fetch nothing of a queue, or of all' : 'let a queue, or all, go on',
      )
      .option('--all', 'every queue')
      .option('--note <text>', 'why, for whoever looks')
      .action((queue: string | undefined, flags: PauseFlags, command: Command) =>
        pause(command, verb, queue, flags),
      );
  }
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

interface PauseFlags {
  all?: boolean;
  note?: string;
}

async function pause(
  command: Command,
  verb: 'pause' | 'resume',
  queue: string | undefined,
  { all = false, note = '' }: PauseFlags,
): Promise<void> {
  const settings = settingsOf(command);
  if ((queue === undefined) !== all) {
    refuseArgument('queue', queue, 'must be given, or --all', `Write carillon queues ${verb} <queue>.`);
  }
  const changed = await withAdmin(settings, async (admin) => {
    if (queue === undefined) return verb === 'pause' ? admin.pauseAll(note) : admin.resumeAll();
    await (verb === 'pause' ? admin.pauseQueue(queue, note) : admin.resumeQueue(queue));
    return [queue];
  });
  if (settings.json) return printJson({ done: `${verb}d`, all, queues: changed });
  printLine(`${verb}d ${all ? 'everything' : plain(queue ?? '')}`);
}
