import type { Command } from 'commander';
import { WorkerRegistry } from '../redis/worker-registry.js';
import { withShard } from './connect.js';
import { away, plain, printJson, printLine, printTable, remark } from './output.js';
import { settingsOf } from './settings.js';

const DRAIN_HELP = `
It finishes the runs that it has and takes no more, but keeps running: before a deployment, say. SIGTERM does the same
and ends it. The beginning of its id will do, where no other worker's begins so. --undo lets it take runs again; so does a restart.

Examples:
  carillon workers drain 1c9d2e --note 'new kernel'
  carillon workers drain 1c9d2e --undo`;

/** Workers of the SDK: \`carillon workers …\`. Those of BullMQ alone tell nobody that they live. */
export function addWorkers(program: Command): void {
  const workers = program.command('workers').description('Carillon’s workers, and what they do');

  workers
    .command('list [queue]')
    .description('each worker: where it runs, how many runs it has, which jobs it handles')
    .action(list);

  workers
    .command('drain <id>')
    .description('let a worker finish what it has and take nothing more')
    .option('--note <text>', 'why, for whoever looks')
    .option('--undo', 'let it take runs again')
    .addHelpText('after', DRAIN_HELP)
    .action(drain);
}

async function list(queue: string | undefined, _flags: unknown, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const all = await withShard(settings, (shard) => new WorkerRegistry(shard).list());
  const rows = all.filter((worker) => queue === undefined || worker.queue === queue);
  if (settings.json) return printJson({ namespace: settings.namespace, workers: rows });
  await printTable(
    ['worker', 'queue', 'host', 'pid', 'started', 'runs', 'draining', 'handles', 'last told'],
    rows.map((row) => [
      row.id,
      row.queue,
      row.host,
      String(row.pid),
      away(Date.parse(row.startedAt)),
      `${row.running} of ${row.concurrency}`,
      row.draining ? 'yes' : 'no',
      Object.entries(row.handlers)
        .map(([name, effects]) => `${name} (${effects ?? 'may run twice'})`)
        .join(', '),
      `${Math.round(row.beatAge / 1000)} s ago`,
    ]),
  );
  if (rows.length === 0) remark('no worker of Carillon lives; those of BullMQ alone are not seen here');
}

async function drain(
  given: string,
  flags: { note?: string; undo?: boolean },
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  const asked = flags.undo !== true;
  const id = await withShard(settings, (shard) => {
    const registry = new WorkerRegistry(shard);
    return asked ? registry.drain(given, flags.note ?? '') : registry.endDrain(given);
  });
  if (settings.json) return printJson({ id, draining: asked });
  printLine(
    asked
      ? `${plain(id)} was asked to drain; \`carillon workers list\` shows when it has no runs`
      : `${plain(id)} takes runs again`,
  );
}
