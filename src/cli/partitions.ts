import type { Command } from 'commander';
import type { ClusterView } from '../coordination/etcd/cluster-view.js';
import { formatDuration } from '../domain/durations.js';
import { CarillonError } from '../domain/errors.js';
import { integerArgument } from './arguments.js';
import { remarkUnreadable, withKnownCluster } from './cluster.js';
import { withRedis } from './connect.js';
import { addEtcdFlags } from './etcd-flags.js';
import { refuseArgument } from './failure.js';
import { away, printJson, printLine, printTable, remark } from './output.js';
import { partitionRows } from './partition-rows.js';
import { settingsOf } from './settings.js';

const LIST_HELP = `
States: led; taking over (its leader is raising the fences); handing over; waiting (for a partition of another count);
leaderless; refused (Redis knows of a later term than etcd, which was rebuilt or restored: \`carillon fence adopt\`).

Examples:
  carillon partitions list --etcd http://10.0.0.6:2379
  carillon partitions list --json | jq '.partitions[] | select(.state != "led")'`;

const SCALE_HELP = `
It wins over what the schedulers are configured to, and pins the number: a rollout of another --partitions changes
nothing until --unpin. Then the number follows the configuration again, once all live instances agree on it. No data
moves and no client knows; each bucket changes its leader at most once, within a second or two.

Examples:
  carillon partitions scale 32
  carillon partitions scale --unpin`;

/** Who leads what, by etcd: \`carillon partitions …\`. */
export function addPartitions(program: Command): void {
  const partitions = program.command('partitions').description('who leads which part of the timers, by etcd');

  addEtcdFlags(
    partitions
      .command('list')
      .description('each partition: its leader, its term, its lag, how the last term ended')
      .addHelpText('after', LIST_HELP),
  ).action(list);

  addEtcdFlags(
    partitions
      .command('scale [count]')
      .description('divide the timers into so many partitions, whatever schedulers are configured to')
      .option('--unpin', 'let the number follow the configuration again')
      .addHelpText('after', SCALE_HELP),
  ).action(scale);
}

async function list(_flags: unknown, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { readBucketLoads } = await import('../redis/bucket-loads.js');
  const { Keys } = await import('../redis/keys.js');
  const { namespace } = settings;
  const { view, loads } = await withKnownCluster(settings, ({ read }) =>
    withRedis(settings, async (client) => {
      const loads = await readBucketLoads(client, new Keys(namespace));
      // After the fences: one that a hand-over raises in between would seem to be of a later term than etcd knows.
      return { loads, view: await read() };
    }),
  );
  const rows = partitionRows(view, loads.buckets, loads.now);
  const layout = { partitions: view.layout?.partitions ?? null, pinned: view.layout?.pinned ?? false };
  const epoch = view.epoch === undefined ? null : { number: view.epoch.number, id: view.epoch.id };
  if (settings.json) return printJson({ namespace, layout, epoch, partitions: rows });
  await printTable(
    ['partition', 'buckets', 'state', 'leader', 'token', 'since', 'lag', 'pending', 'last hand-over'],
    rows.map((row) => [
      `${row.partition}/${row.of}`,
      `${row.first}-${row.last}`,
      row.state,
      row.leader ?? '-',
      row.token === null ? '-' : String(row.token),
      row.since === null ? '-' : away(Date.parse(row.since)),
      row.lag === 0 ? '-' : formatDuration(row.lag),
      String(row.pending),
      row.lastHandOver === null
        ? '-'
        : `${away(Date.parse(row.lastHandOver.at))}, ${row.lastHandOver.reason}`,
    ]),
  );
  const led = rows.filter(({ state }) => state === 'led').length;
  remark(`${led} of ${rows.length} led; ${layout.partitions} partitions${layout.pinned ? ', pinned' : ''}`);
  remarkUnreadable(view);
}

async function scale(count: string | undefined, flags: { unpin?: boolean }, command: Command): Promise<void> {
  const settings = settingsOf(command);
  if ((count === undefined) === (flags.unpin !== true)) {
    refuseArgument('count', count, 'and --unpin exclude each other', 'Give a number, or --unpin.');
  }
  const wanted = count === undefined ? undefined : integerArgument(count, 'count', 1, 256);
  const { from, to } = await withKnownCluster(settings, async (cluster, view) => {
    const { setLayout } = await import('../coordination/etcd/operator-changes.js');
    const next = { partitions: wanted ?? view.layout?.partitions ?? 16, pinned: wanted !== undefined };
    if (!(await setLayout(cluster.client, cluster.keys, view, next))) {
      throw new CarillonError('CONFLICT', 'the number of partitions was changed by somebody else meanwhile', {
        field: 'count',
        todo: 'Look at it with `carillon partitions list`, then try again.',
        retryable: true,
      });
    }
    return { from: view.layout, to: next };
  });
  if (settings.json) {
    return printJson({ namespace: settings.namespace, before: layoutOf(from), after: layoutOf(to) });
  }
  printLine(
    to.pinned
      ? `${from?.partitions ?? 'no'} → ${to.partitions} partitions, pinned: configuration changes nothing until --unpin`
      : `unpinned: ${to.partitions} partitions until all live instances are configured to another number`,
  );
}

function layoutOf(layout: ClusterView['layout'] | { partitions: number; pinned: boolean }) {
  return layout === undefined ? null : { partitions: layout.partitions, pinned: layout.pinned };
}
