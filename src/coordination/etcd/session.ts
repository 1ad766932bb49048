import type { Logger } from '../../support/logger.js';
import { pause } from '../../support/pause.js';
import { Service } from '../../support/service.js';
import type { EtcdClient } from './etcd-client.js';

export interface SessionOptions {
  /** ms; etcd may grant a longer one. */
  ttl: number;
  /** Goes on trusting itself while etcd cannot be reached, until etcd says that the lease is gone. */
  outlivesEtcd: boolean;
  /** Monotonic ms. */
  monotonic(): number;
  logger: Logger;
  /** Called once, when the lease can no longer be trusted. */
  onLost(reason: string): void;
}

/** Attempts at a renewal follow each other by this, ms, and by the second when etcd is away for longer. */
const AGAIN_SOON = 50;
const AGAIN = 500;

/**
 * One lease of etcd, on which everything of one instance hangs.
 *
 * - **alive**: renewed each TTL/5, member after member until one answers. Trusted until the granted TTL, less a margin,
 *   after the last successful renewal was *sent*, by the monotonic clock: {@link isValid} is right in the first turn of
 *   the event loop after a pause of any length.
 * - **lost** (the trust ended, or etcd knows the lease no more): for good. Nothing of it is used again.
 *
 * Stopping revokes the lease, and with it every key under it.
 */
export class EtcdSession extends Service {
  #id = '';
  #ttl = 0;
  #validUntil = Number.NEGATIVE_INFINITY;
  #lost: string | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: EtcdClient,
    private readonly options: SessionOptions,
  ) {
    super();
  }

  /** The lease; decimal. */
  get id(): string {
    return this.#id;
  }

  /** ms, as granted. */
  get ttl(): number {
    return this.#ttl;
  }

  /** Read before each action, never cached. */
  isValid(): boolean {
    if (this.#lost !== undefined || this.#id === '') return false;
    return this.options.outlivesEtcd || this.isTrusted();
  }

  /** Whether etcd itself would still say so: false once the deadline has passed, whatever is done about it. */
  isTrusted(): boolean {
    return this.#lost === undefined && this.options.monotonic() < this.#validUntil;
  }

  /** Somebody saw that a key of ours is gone. */
  lose(reason: string): void {
    if (this.#lost !== undefined) return;
    this.#lost = reason;
    this.options.onLost(reason);
  }

  protected override async onStart(signal: AbortSignal): Promise<void> {
    const sentAt = this.options.monotonic();
    const { id, ttl } = await this.client.grant(Math.ceil(this.options.ttl / 1000));
    this.#id = id;
    this.#ttl = ttl * 1000;
    this.#renewed(sentAt, this.#ttl);
    this.#loop = this.#run(signal);
  }

  protected override async onStop(): Promise<void> {
    await this.#loop;
    if (this.#id === '') return;
    this.#lost ??= 'it was given back';
    await this.client.revoke(this.#id).catch((error: unknown) => {
      this.options.logger.debug({ error: String(error) }, 'a lease could not be revoked; it ends by its TTL');
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#lost === undefined) {
      await pause(this.#ttl / 5, signal);
      if (!signal.aborted) await this.#renew(signal);
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { monotonic, outlivesEtcd } = this.options;
    while (!signal.aborted && this.#lost === undefined) {
      if (!outlivesEtcd && !this.isTrusted()) return this.lose('its deadline passed');
      const sentAt = monotonic();
      let left: number;
      try {
        left = await this.client.keepAlive(this.#id, Math.min(1000, this.#ttl / 6));
      } catch {
        await pause(this.isTrusted() ? AGAIN_SOON : AGAIN, signal);
        continue;
      }
      if (left === 0) return this.lose('etcd has ended its lease');
      if (!outlivesEtcd && !this.isTrusted()) return this.lose('its deadline passed');
      return this.#renewed(sentAt, left * 1000);
    }
  }

  #renewed(sentAt: number, ttl: number): void {
    this.#validUntil = sentAt + ttl - Math.max(500, ttl / 10);
  }
}
