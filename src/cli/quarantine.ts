import type { Command } from 'commander';
import { integerArgument } from './arguments.js';
import { withAdmin } from './connect.js';
import { plain, printJson, printLine, printTable, remark, utc } from './output.js';
import { settingsOf } from './settings.js';

/** Records that were set aside: `carillon quarantine …`. */
export function addQuarantine(program: Command): void {
  const quarantine = program
    .command('quarantine')
    .description('records that could not be dispatched and were set aside');

  quarantine
    .command('list [queue]')
    .description('what was set aside, since when and why')
    .option('--limit <count>', 'at most so many, 1 to 1000 (default: 100)')
    .option('--cursor <cursor>', 'go on where the page before ended')
    .action(list);

  quarantine
    .command('release <queue> <id>')
    .description('put a record back into its timers; it fires at once when its time has passed')
    .action((queue: string, id: string, _options, command: Command) =>
      settle(command, queue, id, 'released'),
    );

  quarantine
    .command('discard <queue> <id>')
    .description('drop a record for good')
    .action((queue: string, id: string, _options, command: Command) =>
      settle(command, queue, id, 'discarded'),
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
    admin.quarantine({ limit, ...(queue && { queue }), ...(cursor && { cursor }) }),
  );
  if (settings.json) return printJson({ quarantined: page.items, cursor: page.cursor ?? null });
  await printTable(
    ['queue', 'id', 'since', 'reason'],
    page.items.map(({ queue: name, id, since, reason }) => [name, id, utc(since), reason]),
  );
  if (page.items.length === 0) remark('nothing is set aside');
  if (page.cursor !== undefined) remark(`there is more: --cursor ${page.cursor}`);
}

async function settle(
  command: Command,
  queue: string,
  id: string,
  done: 'released' | 'discarded',
): Promise<void> {
  const settings = settingsOf(command);
  await withAdmin(settings, (admin) =>
    done === 'released' ? admin.releaseQuarantine(queue, id) : admin.discardQuarantine(queue, id),
  );
  if (settings.json) return printJson({ queue, id, done });
  printLine(`${done} ${plain(id)} of ${queue}`);
}
