import { CarillonError, isCarillonError } from '../../domain/errors.js';
import type { Logger } from '../../support/logger.js';
import { pause } from '../../support/pause.js';
import { Service } from '../../support/service.js';
import type { Coordinator, Term } from '../coordinator.js';
import { assignPartitions } from './assignment.js';
import { type ClusterView, type InstanceVersions, readCluster } from './cluster-view.js';
import { createEpoch, epochText } from './epoch.js';
import type { EtcdClient } from './etcd-client.js';
import { EtcdKeys } from './etcd-keys.js';
import { type FreePartition, FreePartitions } from './free-partitions.js';
import { HeldTerm, partitionName } from './held-term.js';
import { Standing } from './membership.js';
import { OwnMember } from './own-member.js';
import { type Claimant, claimPartition, releasePartitions } from './partition-claims.js';
import { nextLayout } from './partition-layout.js';
import { Progress } from './progress.js';
import { EtcdSession } from './session.js';

export interface EtcdCoordinatorOptions {
  namespace: string;
  /** This process among others; no two that live may share one. */
  instanceId: string;
  /** ms */
  ttl: number;
  /** A newcomer is given nothing that another holds before that, ms. */
  settle: number;
  /** How many partitions this instance is configured to. */
  partitions: number;
  /** The longest sleep of the scheduler's loop, ms. */
  poll: number;
  /** What becomes of terms when etcd cannot be reached until the deadline. */
  onEtcdLoss: 'stop' | 'continue';
  versions: InstanceVersions;
  /** Monotonic ms. */
  monotonic(): number;
  /** Wall ms; only shown. */
  wall(): number;
  logger: Logger;
}

/** ms between two reconciles when nothing is heard. */
const EVERY = 1000;
/** Changes come in swarms: one reconcile for all within this, ms. */
const DEBOUNCE = 50;
/** The longest wait for the scheduler's loop to finish a turn, ms. A hung one is fenced. */
const REST_MAX = 1000;

/**
 * Coordination by etcd: any number of instances, each partition led by one.
 *
 * - **joining**: a lease, and the member key under it; tried again each second while etcd is away.
 * - **taking part**: each second, and when the watch says that something changed, the whole state is read and what
 *   differs from it is put right: keys that are gone end their terms, partitions that belong to others are handed over,
 *   free ones that belong here are taken.
 * - **out** (the lease was lost, or the member key is gone): every term has ended; it joins anew with another lease.
 *
 * Who should lead is decided here; who does, by the fences in Redis.
 */
export class EtcdCoordinator extends Service implements Coordinator {
  readonly #options: EtcdCoordinatorOptions;
  readonly #keys: EtcdKeys;
  readonly #member: OwnMember;
  readonly #listeners: (() => void)[] = [];
  readonly #terms = new Map<string, HeldTerm>();
  readonly #standing: Standing;
  readonly #free = new FreePartitions();
  #client: EtcdClient | undefined;
  #session: EtcdSession | undefined;
  /** The lease of the session before, to be ended for good. */
  #formerLease = '';
  #ending: Promise<void> = Promise.resolve();
  #progress: Progress;
  #draining = false;
  #assignment: { input: string; owners: readonly string[] } = { input: '', owners: [] };
  #drainKey = false;
  /** The lowest create revision of our member key: what was asked of the id before that was asked of another process. */
  #beganAt = Number.POSITIVE_INFINITY;
  #trouble: string | undefined = 'it has not joined yet';
  /** The trouble is that etcd did not answer, which says little while the lease is trusted. */
  #passing = false;
  #rest: () => Promise<void> = async () => undefined;
  #poked = false;
  #wake: () => void = () => undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly openClient: () => EtcdClient,
    options: EtcdCoordinatorOptions,
  ) {
    super();
    const { namespace, instanceId, ttl, settle, poll, monotonic } = options;
    this.#options = options;
    this.#keys = new EtcdKeys(namespace);
    this.#member = new OwnMember(this.#keys, {
      instanceId,
      startedAt: this.#wallText(),
      partitions: options.partitions,
      versions: options.versions,
    });
    // Two of them notice the same trouble up to a poll and two reads apart.
    this.#standing = new Standing(instanceId, { settle, confirm: poll + 2 * EVERY });
    this.#progress = new Progress(ttl, monotonic());
  }

  terms(): readonly Term[] {
    return [...this.#terms.values()].filter((term) => term.isValid());
  }

  /** An etcd that did not answer is none as long as the lease is trusted. */
  trouble(): string | undefined {
    return this.#passing && this.#session?.isTrusted() ? undefined : this.#trouble;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Nothing of Redis is heard here: the scheduler's loop asks it itself. */
  onTime(): void {}

  onHandOver(rest: () => Promise<void>): void {
    this.#rest = rest;
  }

  fed(at: number): void {
    this.#progress.fed(at);
  }

  /** The next read tells whether its key is still ours: if so etcd is the one that is behind. */
  refused(term: Term): boolean {
    this.#poke();
    return term.isValid();
  }

  protected override async onStart(signal: AbortSignal): Promise<void> {
    this.#client = this.openClient();
    this.#client.watch(this.#keys.prefix, () => this.#poke());
    const next = await this.#turn();
    this.#loop = this.#run(signal, next);
  }

  protected override async onStop(): Promise<void> {
    this.#wake();
    await this.#loop;
    const terms = this.#endAll();
    const client = this.#client;
    const session = this.#session;
    this.#session = undefined;
    if (client === undefined) return;
    try {
      if (session?.isValid()) await this.#release(terms, 'it stopped').catch(() => undefined);
      await Promise.all([this.#ending, session?.stop()]);
      if (this.#drainKey)
        await client
          .txn({ if: [], success: [{ delete: this.#keys.drain(this.#options.instanceId) }] })
          .catch(() => undefined);
    } finally {
      client.close();
      this.#client = undefined;
    }
  }

  async #run(signal: AbortSignal, first: number): Promise<void> {
    let next = first;
    while (!signal.aborted) {
      await this.#sleep(next);
      if (this.#poked) await pause(DEBOUNCE, signal);
      this.#poked = false;
      if (!signal.aborted) next = await this.#turn();
    }
  }

  /** Until something is heard, at most `ms`. */
  #sleep(ms: number): Promise<void> {
    if (this.#poked) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #poke(): void {
    this.#poked = true;
    this.#wake();
  }

  /** Reads what is and puts right what differs. @returns ms until the next look. */
  async #turn(): Promise<number> {
    try {
      const client = this.#client as EtcdClient;
      if (this.#session?.isValid() !== true) await this.#join(client);
      const next = await this.#reconcile(client, this.#session as EtcdSession);
      this.#told(undefined);
      return next;
    } catch (error) {
      this.#passing = isCarillonError(error, 'ETCD_UNAVAILABLE');
      this.#told(error instanceof Error ? error.message : String(error));
      return EVERY;
    }
  }

  async #join(client: EtcdClient): Promise<void> {
    const { ttl, onEtcdLoss, monotonic, logger } = this.#options;
    this.#forgetSession();
    const session = new EtcdSession(client, {
      ttl,
      outlivesEtcd: onEtcdLoss === 'continue',
      monotonic,
      logger,
      onLost: (reason) => {
        if (this.#session !== session) return;
        logger.error({ reason }, 'lost the lease in etcd: leads nothing until it has another');
        this.#changed();
        this.#poke();
      },
    });
    await session.start();
    try {
      if (this.#formerLease !== '') await client.revoke(this.#formerLease).catch(() => undefined);
      this.#formerLease = '';
      this.#draining = false;
      await this.#member.register(client, session.id);
    } catch (error) {
      await session.stop();
      throw error;
    }
    this.#session = session;
    this.#standing.reset();
    this.#free.reset();
    logger.info({ lease: session.id, ttl: session.ttl }, 'joined');
  }

  /** Ends what hung on a session that is over. */
  #forgetSession(): void {
    const session = this.#session;
    this.#session = undefined;
    this.#endAll();
    if (session === undefined) return;
    this.#formerLease = session.id;
    session.lose('another one follows');
    this.#ending = session.stop();
  }

  async #reconcile(client: EtcdClient, session: EtcdSession): Promise<number> {
    const { instanceId, monotonic, partitions } = this.#options;
    const view = await readCluster(client, this.#keys);
    const me = view.members.find((member) => member.instanceId === instanceId);
    if (me?.lease !== session.id) {
      session.lose('its member key is gone');
      return 0;
    }
    for (const key of [this.#keys.epoch, this.#keys.layout]) {
      if (!view.unreadable.includes(key)) continue;
      throw new CarillonError('BAD_RECORD', `the key ${key} in etcd cannot be read`, {
        todo: 'Delete it; the epoch then needs `carillon fence adopt`.',
      });
    }
    if (view.epoch === undefined) {
      await createEpoch(client, this.#keys);
      return 0;
    }
    if (await this.#changesLayout(client, view, partitions)) return 0;
    this.#follow(view, session);
    this.#beganAt = Math.min(this.#beganAt, me.createRevision);
    await this.#heedDrain(client, view);
    this.#standing.observe(view.members, monotonic());
    const free = this.#free.observe(view, this.#wallText());
    const { mine, kept } = this.#wanted(view);
    const surplus = [...this.#terms.values()].filter((term) => term.ended || !kept.has(partitionName(term)));
    const settlesIn = this.#standing.settlesIn(instanceId);
    const ready = settlesIn <= 0 ? free.filter(({ n }) => mine.has(n)) : [];
    await Promise.all([this.#handOver(surplus), this.#claimAll(client, session, view, ready)]);
    const state = { fit: this.#progress.isFit(monotonic()), draining: this.#draining };
    await this.#member.publish(client, session.id, me.createRevision, state);
    const waits = view.members.map((member) => this.#standing.settlesIn(member.instanceId));
    return Math.max(10, Math.min(EVERY, ...waits.filter((ms) => ms > 0)));
  }

  /** Writes the first layout, or the one that all agree on. True when it has to be read again. */
  async #changesLayout(client: EtcdClient, view: ClusterView, configured: number): Promise<boolean> {
    const { layout } = view;
    const key = this.#keys.layout;
    const next =
      layout === undefined
        ? { partitions: configured, pinned: false }
        : nextLayout(
            layout,
            view.members.map((member) => member.partitions),
          );
    if (next === undefined) return false;
    await client.txn({
      if: [layout === undefined ? { key, createRevision: 0 } : { key, modRevision: layout.modRevision }],
      success: [{ put: key, value: JSON.stringify(next) }],
    });
    this.#options.logger.info(
      { from: layout?.partitions, to: next.partitions },
      'the number of partitions changes',
    );
    return true;
  }

  /** Ends terms whose key is gone or whose epoch is over; begins those whose acquisition was answered too late. */
  #follow(view: ClusterView, session: EtcdSession): void {
    const epoch = epochText(view.epoch as NonNullable<ClusterView['epoch']>);
    const mine = new Map(
      view.partitions
        .filter(({ lease }) => lease === session.id)
        .map((partition) => [partitionName(partition), partition]),
    );
    let changed = false;
    for (const [name, term] of this.#terms) {
      if (mine.get(name)?.token === term.token && term.epoch === epoch) continue;
      const reason = mine.has(name) ? 'its epoch is over' : 'its key in etcd is gone';
      this.#options.logger.warn({ partition: name, token: term.token, reason }, 'leads a partition no more');
      term.end();
      this.#terms.delete(name);
      changed = true;
    }
    for (const [name, partition] of mine) {
      if (this.#terms.has(name)) continue;
      this.#terms.set(name, this.#term(partition, partition.token, epoch, session));
      changed = true;
    }
    if (changed) this.#changed();
  }

  /** A drain of a process that was killed, whose id we have, ends here. */
  async #heedDrain(client: EtcdClient, view: ClusterView): Promise<void> {
    const { instanceId, logger } = this.#options;
    const drain = view.drains.find((one) => one.instanceId === instanceId);
    const asked = drain !== undefined && drain.modRevision > this.#beganAt;
    if (drain !== undefined && !asked) {
      const key = this.#keys.drain(instanceId);
      await client.txn({ if: [{ key, modRevision: drain.modRevision }], success: [{ delete: key }] });
    }
    if (asked === this.#draining) return;
    this.#draining = asked;
    this.#drainKey ||= asked;
    logger.info(asked ? 'was asked to hand over and take nothing' : 'takes part again');
  }

  /** The numbers of the partitions that are ours to take, and the names of those that we keep. */
  #wanted(view: ClusterView): { mine: Set<number>; kept: Set<string> } {
    const { instanceId } = this.#options;
    const count = view.layout?.partitions ?? 0;
    const members = view.members.map((member) =>
      member.instanceId === instanceId ? { ...member, draining: this.#draining } : member,
    );
    const { all, settled } = this.#standing.candidates(members);
    const owner = this.#assigned(all, count);
    const settledOwner = settled.length === all.length ? owner : assignPartitions(settled, count);
    const mine = new Set<number>();
    const kept = new Set<string>();
    for (let n = 0; n < count; n++) {
      if (owner[n] === instanceId) mine.add(n);
      if (owner[n] === instanceId || settledOwner[n] === instanceId) kept.add(partitionName({ count, n }));
    }
    return { mine, kept };
  }

  /** Computed when the members have changed, not each second. */
  #assigned(instances: readonly string[], count: number): readonly string[] {
    const input = JSON.stringify([count, ...instances]);
    if (this.#assignment.input !== input) {
      this.#assignment = { input, owners: assignPartitions(instances, count) };
    }
    return this.#assignment.owners;
  }

  async #claimAll(
    client: EtcdClient,
    session: EtcdSession,
    view: ClusterView,
    partitions: readonly FreePartition[],
  ): Promise<void> {
    const epoch = epochText(view.epoch as NonNullable<ClusterView['epoch']>);
    const claimant = this.#claimant(session);
    const outcomes = await Promise.allSettled(
      partitions.map(async (partition) => {
        const token = await claimPartition(client, this.#keys, partition, claimant, view, partition.lost);
        if (token === undefined) return;
        this.#free.taken(partition, claimant.instanceId, token);
        this.#terms.set(partitionName(partition), this.#term(partition, token, epoch, session));
      }),
    );
    if (partitions.length > 0) this.#changed();
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Ends terms, lets what is under way finish, and gives their partitions back. */
  async #handOver(terms: readonly HeldTerm[]): Promise<void> {
    if (terms.length === 0) return;
    for (const term of terms) term.end();
    this.#changed();
    const over = new AbortController();
    await Promise.race([this.#rest(), pause(REST_MAX, over.signal)]);
    over.abort();
    await this.#release(terms, this.#draining ? 'it drains' : 'another instance should lead it');
    for (const term of terms) {
      if (this.#terms.get(partitionName(term)) === term) this.#terms.delete(partitionName(term));
    }
  }

  async #release(terms: readonly HeldTerm[], reason: string): Promise<void> {
    const session = this.#session;
    const client = this.#client;
    if (terms.length === 0 || client === undefined) return;
    const lease = session?.id ?? '';
    const { instanceId, logger } = this.#options;
    logger.info({ partitions: terms.map(partitionName), reason }, 'hands partitions over');
    await releasePartitions(client, this.#keys, terms, { instanceId, lease, at: this.#wallText() }, reason);
  }

  #term(
    partition: { count: number; n: number },
    token: number,
    epoch: string,
    session: EtcdSession,
  ): HeldTerm {
    return new HeldTerm(partition, token, epoch, this.#options.instanceId, session);
  }

  #claimant(session: EtcdSession): Claimant {
    return { instanceId: this.#options.instanceId, lease: session.id, at: this.#wallText() };
  }

  #endAll(): HeldTerm[] {
    const terms = [...this.#terms.values()];
    for (const term of terms) term.end();
    this.#terms.clear();
    if (terms.length > 0) this.#changed();
    return terms;
  }

  #wallText(): string {
    return new Date(this.#options.wall()).toISOString();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Says the same thing once. */
  #told(trouble: string | undefined): void {
    if (trouble === this.#trouble) return;
    this.#trouble = trouble;
    if (trouble !== undefined) this.#options.logger.error(`coordination by etcd: ${trouble}`);
  }
}
