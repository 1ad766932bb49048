import type { Command } from 'commander';
import { withAdmin } from './connect.js';
import { refuseArgument } from './failure.js';
import { plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { addForecast } from './queues-forecast.js';
import { settingsOf } from './settings.js';
import { stopsText } from './stops-text.js';

/** Queues as the timers know them: `carillon queues …`. */
export function addQueues(program: Command): void {
  const queues = program.command('queues').description('queues, and what waits in the timers for them');
  queues
    .command('list')
    .description('every queue with its counts, and why it is parked or stopped')
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
    ['queue', 'scheduled', 'paused', 'parked', 'waiting', 'held', 'schedules', 'broken', 'stopped'],
    queues.map(({ name, scheduled, paused, parked, waiting, held, schedules, broken, hold, pause }) => [
      name,
      ...[scheduled, paused, parked, waiting, held, schedules].map(String),
      broken === undefined ? '' : `${broken.reason} (since ${utc(broken.since)})`,
      stopsText({ hold, pause }),
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
  const { changed, before } = await withAdmin(settings, async (admin) => {
    if (queue === undefined)
      return { changed: await (verb === 'pause' ? admin.pauseAll(note) : admin.resumeAll()) };
    const before = (await admin.queues()).find(({ name }) => name === queue);
    await (verb === 'pause' ? admin.pauseQueue(queue, note) : admin.resumeQueue(queue));
    return { changed: [queue], before };
  });
  if (settings.json) {
    const known = queue === undefined ? {} : { known: before !== undefined };
    return printJson({ done: `${verb}d`, all, queues: changed, ...known });
  }
  printLine(`${verb}d ${all ? 'everything' : plain(queue ?? '')}`);
  if (queue === undefined) return;
  // It may be meant ahead of the first job.
  if (before === undefined) remark(`nothing of ${plain(queue)} is known here yet: is the name right?`);
  else if (verb === 'resume' && before.pause === undefined) remark('it was not paused from here');
  if (verb === 'resume' && before?.hold) {
    remark(`its gate is on hold: \`carillon gates release ${plain(queue)}\` lets it go on`);
  }
}
