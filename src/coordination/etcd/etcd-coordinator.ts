import { CarillonError, isCarillonError } from '../../domain/errors.js';
import type { Logger } from '../../support/logger.js';
import { pause } from '../../support/pause.js';
import { Service } from '../../support/service.js';
import type { Coordinator, Term } from '../coordinator.js';
import { type ClusterView, type InstanceVersions, type Member, readCluster } from './cluster-view.js';
import { DrainOrder } from './drain-order.js';
import { createEpoch } from './epoch.js';
import type { EtcdClient } from './etcd-client.js';
import { EtcdKeys } from './etcd-keys.js';
import { FreePartitions } from './free-partitions.js';
import { HeldTerms } from './held-terms.js';
import { Standing } from './membership.js';
import { setLayout } from './operator-changes.js';
import { OwnMember } from './own-member.js';
import { nextLayout } from './partition-layout.js';
import { Progress } from './progress.js';
import { EtcdSession } from './session.js';
import { WantedPartitions } from './wanted-partitions.js';

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
  readonly #terms: HeldTerms;
  readonly #drain: DrainOrder;
  readonly #standing: Standing;
  readonly #wanted: WantedPartitions;
  readonly #free = new FreePartitions();
  #client: EtcdClient | undefined;
  #session: EtcdSession | undefined;
  /** The lease of the session before, to be ended for good. */
  #formerLease = '';
  #ending: Promise<void> = Promise.resolve();
  #progress: Progress;
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
    this.#terms = new HeldTerms({
      keys: this.#keys,
      instanceId,
      now: () => this.#wallText(),
      onChange: () => this.#changed(),
      logger: options.logger,
    });
    this.#drain = new DrainOrder(this.#keys, instanceId);
    this.#wanted = new WantedPartitions(instanceId);
    // Two of them notice the same trouble up to a poll and two reads apart.
    this.#standing = new Standing(instanceId, { settle, confirm: poll + 2 * EVERY });
    this.#progress = new Progress(ttl, monotonic());
  }

  terms(): readonly Term[] {
    return this.#terms.valid();
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
    const terms = this.#terms.endAll();
    const client = this.#client;
    const session = this.#session;
    this.#session = undefined;
    if (client === undefined) return;
    try {
      if (session?.isValid()) await this.#terms.release(client, terms, 'it stopped').catch(() => undefined);
      await Promise.all([this.#ending, session?.stop()]);
      await this.#drain.end(client).catch(() => undefined);
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
      this.#drain.forget();
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
    this.#terms.endAll();
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
    this.#terms.follow(view, session);
    const draining = await this.#drains(client, view, me);
    this.#standing.observe(view.members, monotonic());
    const free = this.#free.observe(view, this.#wallText());
    const { mine, kept } = this.#wanted.of(view, this.#standing, draining);
    const ready = this.#standing.settlesIn(instanceId) <= 0 ? free.filter(({ n }) => mine.has(n)) : [];
    const reason = draining ? 'it drains' : 'another instance should lead it';
    const surplus = this.#terms.surplus(kept);
    const [{ begun, failed }] = await Promise.all([
      this.#terms.claim(client, session, view, ready),
      this.#terms.handOver(client, surplus, this.#rest, reason),
    ]);
    for (const term of begun) this.#free.taken(term, instanceId, term.token);
    if (failed !== undefined) throw failed.reason;
    const state = { fit: this.#progress.isFit(monotonic()), draining };
    await this.#member.publish(client, session.id, me.createRevision, state);
    const waits = view.members.map((member) => this.#standing.settlesIn(member.instanceId));
    return Math.max(10, Math.min(EVERY, ...waits.filter((ms) => ms > 0)));
  }

  /** Writes the first layout, or the one that all agree on. True when it has to be read again. */
  async #changesLayout(client: EtcdClient, view: ClusterView, configured: number): Promise<boolean> {
    const { layout } = view;
    const next =
      layout === undefined
        ? { partitions: configured, pinned: false }
        : nextLayout(
            layout,
            view.members.map((member) => member.partitions),
          );
    if (next === undefined) return false;
    await setLayout(client, this.#keys, view, next);
    this.#options.logger.info(
      { from: layout?.partitions, to: next.partitions },
      'the number of partitions changes',
    );
    return true;
  }

  async #drains(client: EtcdClient, view: ClusterView, me: Member): Promise<boolean> {
    if (await this.#drain.heed(client, view, me)) {
      const news = this.#drain.asked ? 'was asked to hand over and take nothing' : 'takes part again';
      this.#options.logger.info(news);
    }
    return this.#drain.asked;
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
