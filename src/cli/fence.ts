import type { Command } from 'commander';
import type { AdoptOutcome, AdoptPlan, EpochSource } from '../coordination/adopt-fences.js';
import { CarillonError } from '../domain/errors.js';
import type { Shard } from '../redis/shard.js';
import { withCluster } from './cluster.js';
import { confirmed } from './confirm.js';
import { withShard } from './connect.js';
import { addEtcdFlags } from './etcd-flags.js';
import { printJson, printLine, remark } from './output.js';
import { type Settings, settingsOf } from './settings.js';

const HELP = `
Fences in Redis say whose scripts it obeys, and they only rise. Where they stand above what etcd gives out (etcd was made
anew, or restored from an older state; or the namespace was led without etcd before), dispatch stops, since nobody can
tell who is behind. This says that etcd is right from now on: it raises etcd's epoch above every fence, then the fences.
Every leader of before is refused from then on, and takes over anew by itself. Nothing is lowered, no timer is touched;
cut off in the middle, it is finished by being run again. Without --etcd: makes standalone schedulers the ones that Redis
obeys, for a namespace that was led by etcd.
Stop what leads by the other way first: two kinds of leaders would fence each other in turn.

Examples:
  carillon fence adopt --etcd http://10.0.0.6:2379
  carillon fence adopt --dry-run`;

/** Whose scripts Redis obeys: \`carillon fence …\`. */
export function addFence(program: Command): void {
  const fence = program.command('fence').description('whose scripts Redis obeys');
  addEtcdFlags(
    fence
      .command('adopt')
      .description('let Redis obey the leaders of this etcd, or of standalone schedulers, from now on')
      .option('--dry-run', 'only say what stands in the way')
      .option('--yes', 'do not ask')
      .addHelpText('after', HELP),
  ).action(adopt);
}

async function adopt(flags: { dryRun?: boolean; yes?: boolean }, command: Command): Promise<void> {
  const settings = settingsOf(command);
  await withSource(settings, async (source, shard) => {
    const { adoptFences, planAdopt } = await import('../coordination/adopt-fences.js');
    const { FenceStore } = await import('../redis/fence-store.js');
    const fences = new FenceStore(shard);
    const { newEpochId } = await import('../coordination/etcd/epoch.js');
    const newId = newEpochId();
    // In this order, as adoptFences reads them.
    const before = await fences.read();
    const { epoch, highestToken } = await source.read();
    const plan = planAdopt(before, epoch, highestToken, newId);
    if (flags.dryRun === true || plan.epoch === undefined) {
      told(settings, plan, undefined);
      return;
    }
    remark(planLine(plan));
    if (!(await confirmed(flags.yes === true, 'Raise the epoch, and every fence to it?'))) {
      remark('nothing was written');
      return;
    }
    told(settings, plan, await adoptFences(source, fences, newId));
  });
}

/** Where the epoch is kept that shall count, and the fences of the namespace. */
async function withSource(
  settings: Settings,
  use: (source: EpochSource, shard: Shard) => Promise<void>,
): Promise<void> {
  const { namespace } = settings;
  await withShard(settings, async (shard) => {
    if ((await shard.client.exists(shard.keys.layout)) === 0) {
      throw new CarillonError('NOT_FOUND', `the namespace ${namespace} holds nothing`, {
        field: 'namespace',
        given: namespace,
        todo: 'Check --redis, --prefix and --namespace.',
      });
    }
    if (settings.etcd === undefined) {
      const { StandaloneEpoch } = await import('../redis/fence-store.js');
      return use(new StandaloneEpoch(shard), shard);
    }
    const { EtcdEpoch } = await import('../coordination/etcd/epoch.js');
    return withCluster(settings, ({ client: etcd, keys }) => use(new EtcdEpoch(etcd, keys), shard));
  });
}

function told(settings: Settings, plan: AdoptPlan, outcome: AdoptOutcome | undefined): void {
  const { namespace } = settings;
  const { epoch, inTheWay, below } = outcome ?? plan;
  if ((outcome?.above.length ?? 0) > 0) {
    throw new CarillonError(
      'CONFLICT',
      `somebody raised the fences of ${outcome?.above.length} buckets meanwhile`,
      {
        todo: 'Stop the schedulers that lead by the other coordination, then run it again.',
        retryable: true,
      },
    );
  }
  if (settings.json) {
    printJson({
      namespace,
      adopted: outcome !== undefined,
      epoch: epoch ?? null,
      inTheWay: inTheWay.length,
      below: below.length,
    });
    return;
  }
  if (outcome === undefined) printLine(planLine(plan));
  else
    printLine(
      `adopted: epoch ${epoch?.number}, id ${epoch?.id}; its leaders take over within a second or two`,
    );
}

/** Pure. */
function planLine({ epoch, isNew, inTheWay, below }: AdoptPlan): string {
  if (epoch === undefined) return 'no fence stands in the way; nothing needs to be done';
  return isNew
    ? `the fences of ${inTheWay.length} buckets stand in the way; they would be raised to the epoch ${epoch.number}`
    : `an adopt was cut off: the fences of ${below.length} buckets are still to be raised to the epoch ${epoch.number}`;
}
