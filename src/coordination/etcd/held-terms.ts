import type { Logger } from '../../support/logger.js';
import { pause } from '../../support/pause.js';
import type { Term } from '../coordinator.js';
import type { ClusterView } from './cluster-view.js';
import { epochText } from './epoch.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import type { FreePartition } from './free-partitions.js';
import { HeldTerm, partitionName } from './held-term.js';
import { claimPartition, releasePartitions } from './partition-claims.js';
import type { EtcdSession } from './session.js';

export interface HeldTermsOptions {
  keys: EtcdKeys;
  instanceId: string;
  /** ISO 8601; only shown. */
  now(): string;
  /** Called when terms begin or end. */
  onChange(): void;
  logger: Logger;
}

/** The longest wait for the scheduler's loop to finish a turn, ms. A hung one is fenced. */
const REST_MAX = 1000;

/**
 * The partitions that this instance leads. A term begins with its key in etcd, ended or not it stays here until etcd has
 * answered to its release, and it never begins again.
 */
export class HeldTerms {
  readonly #terms = new Map<string, HeldTerm>();

  constructor(private readonly options: HeldTermsOptions) {}

  valid(): Term[] {
    return [...this.#terms.values()].filter((term) => term.isValid());
  }

  /** What is to be handed over: partitions that are not among those we keep, and ended ones that etcd still has. */
  surplus(kept: ReadonlySet<string>): HeldTerm[] {
    return [...this.#terms.values()].filter((term) => term.ended || !kept.has(partitionName(term)));
  }

  /** Ends terms whose key is gone or whose epoch is over; begins those whose acquisition was answered too late. */
  follow(view: ClusterView, session: EtcdSession): void {
    const { logger, onChange } = this.options;
    const epoch = epochOf(view);
    const mine = new Map(
      view.partitions
        .filter(({ lease }) => lease === session.id)
        .map((partition) => [partitionName(partition), partition]),
    );
    let changed = false;
    for (const [name, term] of this.#terms) {
      if (mine.get(name)?.token === term.token && term.epoch === epoch) continue;
      const reason = mine.has(name) ? 'its epoch is over' : 'its key in etcd is gone';
      logger.warn({ partition: name, token: term.token, reason }, 'leads a partition no more');
      term.end();
      this.#terms.delete(name);
      changed = true;
    }
    for (const [name, partition] of mine) {
      if (this.#terms.has(name)) continue;
      this.#begin(partition, partition.token, epoch, session);
      changed = true;
    }
    if (changed) onChange();
  }

  /** Takes free partitions. @returns the terms that began, and what etcd threw for one of the others. */
  async claim(
    client: EtcdClient,
    session: EtcdSession,
    view: ClusterView,
    partitions: readonly FreePartition[],
  ): Promise<{ begun: HeldTerm[]; failed: PromiseRejectedResult | undefined }> {
    const { keys, instanceId, now, onChange } = this.options;
    const epoch = epochOf(view);
    const claimant = { instanceId, lease: session.id, at: now() };
    const begun: HeldTerm[] = [];
    const outcomes = await Promise.allSettled(
      partitions.map(async (partition) => {
        const token = await claimPartition(client, keys, partition, claimant, view, partition.lost);
        if (token !== undefined) begun.push(this.#begin(partition, token, epoch, session));
      }),
    );
    if (partitions.length > 0) onChange();
    return { begun, failed: outcomes.find((outcome) => outcome.status === 'rejected') };
  }

  /** Ends terms, lets what is under way finish (`rest`), and gives their partitions back. */
  async handOver(
    client: EtcdClient,
    terms: readonly HeldTerm[],
    rest: () => Promise<void>,
    reason: string,
  ): Promise<void> {
    if (terms.length === 0) return;
    for (const term of terms) term.end();
    this.options.onChange();
    const over = new AbortController();
    await Promise.race([rest(), pause(REST_MAX, over.signal)]);
    over.abort();
    await this.release(client, terms, reason);
    for (const term of terms) {
      if (this.#terms.get(partitionName(term)) === term) this.#terms.delete(partitionName(term));
    }
  }

  /** Ends all, without a word to etcd. @returns them. */
  endAll(): HeldTerm[] {
    const terms = [...this.#terms.values()];
    for (const term of terms) term.end();
    this.#terms.clear();
    if (terms.length > 0) this.options.onChange();
    return terms;
  }

  /** Tells etcd that terms, which have ended, are free to be taken. */
  async release(client: EtcdClient, terms: readonly HeldTerm[], reason: string): Promise<void> {
    if (terms.length === 0) return;
    const { keys, instanceId, now, logger } = this.options;
    logger.info({ partitions: terms.map(partitionName), reason }, 'hands partitions over');
    await releasePartitions(client, keys, terms, { instanceId, at: now(), reason });
  }

  #begin(
    partition: { count: number; n: number },
    token: number,
    epoch: string,
    session: EtcdSession,
  ): HeldTerm {
    const term = new HeldTerm(partition, token, epoch, this.options.instanceId, session);
    this.#terms.set(partitionName(partition), term);
    return term;
  }
}

/** A view is followed only once it has one. */
function epochOf({ epoch }: ClusterView): string {
  return epochText(epoch as NonNullable<ClusterView['epoch']>);
}
