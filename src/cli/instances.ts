import { hostname } from 'node:os';
import type { Command } from 'commander';
import type { ClusterView } from '../coordination/etcd/cluster-view.js';
import { CarillonError } from '../domain/errors.js';
import { nearestWord } from '../domain/nearest-word.js';
import { remarkUnreadable, withKnownCluster } from './cluster.js';
import { withAdmin } from './connect.js';
import { addEtcdFlags } from './etcd-flags.js';
import { away, plain, printJson, printLine, printTable, remark } from './output.js';
import { settingsOf } from './settings.js';

const DRAIN_HELP = `
It finishes what it is doing, hands its partitions over and takes none, but keeps running: before an upgrade of its
machine, say. SIGTERM does the same and ends it. --undo lets it take part again; so does a restart. The last one
that could lead is refused, unless --force: nobody would lead then.

Examples:
  carillon instances drain eu-1 --note 'new kernel'
  carillon instances drain eu-1 --undo`;

const CHECK_HELP = `
Exit code 0 when it takes part and is fit, 1 otherwise: a health check of a container. Without an id, an instance of this
host. Without etcd it asks whether some scheduler leads.

Examples:
  carillon instances check`;

/** The schedulers that share the work, by etcd: \`carillon instances …\`. */
export function addInstances(program: Command): void {
  const instances = program.command('instances').description('the schedulers that share the work, by etcd');

  addEtcdFlags(
    instances.command('list').description('each instance: where it runs, whether it is fit, what it leads'),
  ).action(list);

  addEtcdFlags(
    instances
      .command('drain <id>')
      .description('let an instance hand over what it leads, and take nothing')
      .option('--note <text>', 'why, for whoever looks')
      .option('--undo', 'let it take part again')
      .option('--force', 'also when nobody else could lead')
      .addHelpText('after', DRAIN_HELP),
  ).action(drain);

  addEtcdFlags(
    instances
      .command('check [id]')
      .description('whether an instance takes part and is fit')
      .addHelpText('after', CHECK_HELP),
  ).action(check);
}

/** What `--json` tells of each. Pure. */
export function instanceRows(view: ClusterView) {
  return view.members
    .map(({ instanceId, host, pid, startedAt, partitions, versions, fit, unfitReason, draining }) => {
      const asked = view.drains.find((one) => one.instanceId === instanceId);
      return {
        instanceId,
        host,
        pid,
        startedAt,
        fit,
        unfitReason: unfitReason ?? null,
        draining: draining || asked !== undefined,
        note: asked?.note ?? null,
        partitions: view.partitions.filter((led) => led.instanceId === instanceId).length,
        configured: partitions,
        versions,
      };
    })
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
}

async function list(_flags: unknown, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const view = await withKnownCluster(settings, async (_cluster, found) => found);
  const rows = instanceRows(view);
  if (settings.json) return printJson({ namespace: settings.namespace, instances: rows });
  await printTable(
    ['instance', 'host', 'pid', 'started', 'fit', 'draining', 'leads', 'configured', 'versions'],
    rows.map((row) => [
      row.instanceId,
      row.host,
      String(row.pid),
      away(Date.parse(row.startedAt)),
      row.fit ? 'yes' : `no: ${row.unfitReason ?? 'it does not say why'}`,
      row.draining ? `yes${row.note === null ? '' : `: ${row.note}`}` : 'no',
      String(row.partitions),
      String(row.configured),
      Object.entries(row.versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(', '),
    ]),
  );
  if (rows.length === 0) remark('no instance takes part');
  remarkUnreadable(view);
}

async function drain(
  id: string,
  flags: { note?: string; undo?: boolean; force?: boolean },
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  await withKnownCluster(settings, async ({ client, keys }, view) => {
    const { askToDrain, endDrain } = await import('../coordination/etcd/operator-changes.js');
    if (flags.undo === true) {
      if (!view.drains.some(({ instanceId }) => instanceId === id)) {
        throw notThere(id, 'was not asked to drain', view.drains);
      }
      return endDrain(client, keys, { instanceId: id });
    }
    if (!view.members.some(({ instanceId }) => instanceId === id)) {
      throw notThere(id, 'does not take part', view.members);
    }
    if (flags.force !== true && !othersCouldLead(view, id)) {
      throw new CarillonError('CONFLICT', `nobody else could lead what ${id} leads`, {
        field: 'id',
        given: id,
        todo: 'Start another instance first, or give --force.',
      });
    }
    await askToDrain(client, keys, id, { at: new Date().toISOString(), note: flags.note });
  });
  const asked = flags.undo !== true;
  if (settings.json) return printJson({ instanceId: id, draining: asked });
  printLine(
    asked
      ? `${plain(id)} was asked to hand over; \`carillon instances list\` shows when it leads nothing`
      : `${plain(id)} takes part again`,
  );
}

/** Pure. */
function othersCouldLead({ members, drains }: ClusterView, id: string): boolean {
  return members.some(
    ({ instanceId, fit, draining }) =>
      instanceId !== id && fit && !draining && !drains.some((asked) => asked.instanceId === instanceId),
  );
}

function notThere(id: string, what: string, known: readonly { instanceId: string }[]): CarillonError {
  const ids = known.map(({ instanceId }) => instanceId);
  const meant = nearestWord(id, ids);
  return new CarillonError('NOT_FOUND', `the instance ${id} ${what}`, {
    field: 'id',
    given: id,
    todo: meant === undefined ? '`carillon instances list` shows who does.' : `Did you mean ${meant}?`,
  });
}

async function check(id: string | undefined, _flags: unknown, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const fault =
    settings.etcd === undefined
      ? await withAdmin(settings, async (admin) => standaloneFault(await admin.leader()))
      : await withKnownCluster(settings, async (_cluster, view) => instanceFault(view, id));
  if (fault !== undefined) throw fault;
  if (settings.json) return printJson({ fit: true });
  printLine('fit');
}

/** What is wrong with an instance, or with all of this host. Pure but for the host's name. */
function instanceFault(view: ClusterView, id: string | undefined): CarillonError | undefined {
  const own = view.members.filter(({ instanceId, host }) =>
    id === undefined ? host === hostname() : instanceId === id,
  );
  if (own.some(({ fit }) => fit)) return undefined;
  const who = id ?? `no instance of the host ${hostname()}`;
  const [unfit] = own;
  const problem =
    unfit === undefined
      ? `${who} ${id === undefined ? 'takes part' : 'does not take part'}`
      : `${unfit.instanceId} is unfit: ${unfit.unfitReason ?? 'it does not say why'}`;
  return new CarillonError('NOT_FOUND', problem, { field: 'id', todo: 'See its log.' });
}

function standaloneFault(
  leader: { beatAge: number | undefined; ttl: number | undefined } | undefined,
): CarillonError | undefined {
  if (leader?.beatAge !== undefined && leader.beatAge < (leader.ttl ?? 10_000)) return undefined;
  return new CarillonError('NOT_FOUND', 'no scheduler leads', { todo: 'See the log of the scheduler.' });
}
