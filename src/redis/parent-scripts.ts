import type { Durability } from './durability.js';
import { type OwnedRange, packOwned } from './owned-ranges.js';
import { decodeRecord, type JobOrSchedule } from './record.js';
import { asBytes, asList, asNumber, asText } from './replies.js';
import type { Reply } from './script-runner.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';
import type { AfterEntry } from './submit-batch.js';

/** What one look at the runs that others wait for did. */
export interface ParentsLook {
  now: number;
  /** Parents that were looked at and children that were told. */
  looked: number;
  /** Children that wait for nothing but their time any more. */
  released: number;
  /** Children that were ended or paused by policy, and why. */
  ended: { child: string; what: string }[];
  /** Watched runs that BullMQ has under way. */
  open: number;
  /** When the next look is due, ms; 0 for never. */
  nextLook: number;
  /** There is more to do at once. */
  more: boolean;
}

/** Where a job stands that waits or is waited for. */
export interface ParentFound {
  identity: string;
  /**
   * `pending` in the timers, `open` in its queue, `started` by a worker, `schedule`, `unknown`, or its outcome: succeeded,
   * dead, cancelled, skipped, removed, lost. `telling`: an earlier job of the id has just ended.
   */
  state: string;
  record: JobOrSchedule | undefined;
  after: AfterEntry | undefined;
  /** Why its outcome is what it is, where there is more to say. */
  reason: string;
  children: string[];
  /** Children that are not among them. */
  more: number;
}

/** Identities of one call that reads. */
const READ = 50;
/** Identities of one call. */
const ANNOUNCED = 250;

/** The calls about runs that others wait for. */
export class ParentScripts {
  constructor(private readonly shard: Shard) {}

  /** Whether nothing waits for anything: one cheap command. */
  async isQuiet(): Promise<boolean> {
    const { client, keys } = this.shard;
    const { latch } = keys;
    const parts = ['dependencies', 'processed', 'failed'].map((part) => `${latch}:${part}`);
    return (await client.exists(keys.looks, keys.watched, ...parts)) === 0;
  }

  /** Has the outcomes of jobs kept that are about to be added. */
  async announce(identities: readonly string[], durability?: Durability): Promise<void> {
    for (let from = 0; from < identities.length; from += ANNOUNCED) {
      const list = JSON.stringify(identities.slice(from, from + ANNOUNCED));
      const args = [this.shard.base, list];
      const { status } = await this.shard.run('announce-parents', 'deny-oom', args, durability);
      if (status !== 'OK') throw statusError(status);
    }
  }

  /**
   * Where jobs stand, in the order of `identities`. It writes nothing.
   * @param children how many of each one's children are named at most.
   */
  async read(identities: readonly string[], children: number): Promise<ParentFound[]> {
    const found: ParentFound[] = [];
    for (let from = 0; from < identities.length; from += READ) {
      const asked = identities.slice(from, from + READ);
      const args = [this.shard.base, JSON.stringify(asked), children];
      const { status, rest } = await this.shard.run('read-parents', 'read-only', args);
      if (status !== 'OK') throw statusError(status);
      const list = asList(rest[1]);
      for (const [i, identity] of asked.entries())
        found.push(foundOf(identity, list.slice(i * 6, i * 6 + 6)));
    }
    return found;
  }

  /** The job names of runs in BullMQ, by identity; those that it keeps no more are left out. */
  async namesOf(identities: readonly string[]): Promise<Map<string, string>> {
    const { client, base } = this.shard;
    const names = await Promise.all(identities.map((identity) => client.hget(`${base}${identity}`, 'name')));
    return new Map(
      identities.flatMap((identity, i): [string, string][] => {
        const name = names[i];
        return name ? [[identity, name]] : [];
      }),
    );
  }

  /**
   * Decides outcomes and tells children, in the buckets of `owned`.
   * @param keep ms that an outcome is kept after it was decided.
   */
  async look(owned: readonly OwnedRange[], limit: number, keep: number): Promise<ParentsLook> {
    const args = [this.shard.base, packOwned(owned), limit, keep];
    const { status, rest } = await this.shard.run('look-at-parents', 'deny-oom', args);
    if (status !== 'OK') throw statusError(status);
    const list = asList(rest[3]);
    const ended: ParentsLook['ended'] = [];
    for (let i = 0; i < list.length; i += 2)
      ended.push({ child: asText(list[i]), what: asText(list[i + 1]) });
    return {
      now: asNumber(rest[0]),
      looked: asNumber(rest[1]),
      released: asNumber(rest[2]),
      ended,
      open: asNumber(rest[4]),
      nextLook: asNumber(rest[5]),
      more: asNumber(rest[6]) > 0,
    };
  }
}

function foundOf(identity: string, [state, record, after, outcome, children, more]: Reply[]): ParentFound {
  const bytes = asBytes(record);
  const waits = asBytes(after).length > 0 ? (JSON.parse(asText(after)) as AfterEntry) : undefined;
  return {
    identity,
    state: asText(state),
    record: bytes.length > 0 ? decodeRecord(bytes) : undefined,
    after: waits,
    reason: asText(outcome).split('|').slice(3).join('|') || (waits?.x?.[1] ?? ''),
    children: asList(children).map(asText).sort(),
    more: asNumber(more),
  };
}
