import { BUCKETS } from '../domain/buckets.js';
import type { Logger } from '../support/logger.js';
import { pause } from '../support/pause.js';
import { Service } from '../support/service.js';
import type { Coordinator, Term } from './coordinator.js';

/** What a heartbeat in Redis may answer; lua/hold-leadership.lua. `now` is Redis' clock in ms. */
export type HoldReply = { now: number } & (
  | { status: 'HELD'; token: number; epoch: string }
  | { status: 'ACQUIRED'; token: number; epoch: string }
  | { status: 'STANDBY'; holder: string; age: number }
  | { status: 'LOST'; holder: string }
);

/** The few calls that standalone coordination makes on Redis; handed in, so that it imports none of it. */
export interface HeartbeatStore {
  /** Keeps the leadership of `token`, or tries for it when `token` is 0. */
  hold(holder: string, token: number, ttl: number, force: boolean): Promise<HoldReply>;
  release(holder: string, token: number): Promise<void>;
}

export interface StandaloneOptions {
  holder: string;
  /** ms; a heartbeat older than this is taken over. */
  ttl: number;
  /** Takes the leadership at the first try, whoever holds it. */
  takeOver: boolean;
  /** Monotonic ms. */
  monotonic(): number;
  logger: Logger;
}

/** How often a stand-by looks, ms. */
const STANDBY_POLL = 1000;

/**
 * Coordination without etcd: one leader of all buckets, by a heartbeat in the same Redis, and any number of processes
 * that stand by.
 *
 * - **standing by**: looks each second; takes over when the heartbeat is older than the TTL.
 * - **leading**: beats each TTL/5 while the scheduler's loop makes progress; trusts itself until the TTL, less a margin,
 *   after the last successful beat was sent.
 * - **lost** (another holder, a fence above, or the deadline passed): the term ends, and it stands by again.
 */
export class StandaloneCoordinator extends Service implements Coordinator {
  readonly #store: HeartbeatStore;
  readonly #options: StandaloneOptions;
  readonly #listeners: (() => void)[] = [];
  readonly #timeListeners: ((now: number) => void)[] = [];
  #term: (Term & { end(): void }) | undefined;
  #validUntil = 0;
  #fedAt = 0;
  #force: boolean;
  #told = '';
  #loop: Promise<void> = Promise.resolve();

  constructor(store: HeartbeatStore, options: StandaloneOptions) {
    super();
    this.#store = store;
    this.#options = options;
    this.#force = options.takeOver;
  }

  terms(): readonly Term[] {
    return this.#term?.isValid() ? [this.#term] : [];
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  onTime(listener: (now: number) => void): void {
    this.#timeListeners.push(listener);
  }

  fed(at: number): void {
    this.#fedAt = Math.max(this.#fedAt, at);
  }

  /** Its scheduler's loop rests before it is stopped, and at no other time another may have its term. */
  onHandOver(): void {}

  trouble(): string | undefined {
    return undefined;
  }

  refused(term: Term, reason: string): boolean {
    if (term === this.#term) this.#end(reason);
    return false;
  }

  protected override async onStart(signal: AbortSignal): Promise<void> {
    await this.#beat();
    this.#loop = this.#run(signal);
  }

  protected override async onStop(): Promise<void> {
    await this.#loop;
    const term = this.#term;
    if (term === undefined) return;
    this.#end('it stops');
    await this.#store.release(term.holder, term.token).catch((error: unknown) => {
      this.#options.logger.warn(
        { error: String(error) },
        'the leadership could not be given back; it ends by its TTL',
      );
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#term === undefined ? STANDBY_POLL : this.#options.ttl / 5, signal);
      if (!signal.aborted) await this.#beat();
    }
  }

  async #beat(): Promise<void> {
    const { holder, ttl, monotonic, logger } = this.#options;
    if (this.#term !== undefined && !this.#term.isValid()) this.#end('its deadline passed');
    if (this.#term !== undefined && monotonic() - this.#fedAt > ttl / 2) {
      logger.error(
        'the scheduler’s loop has made no progress for half a TTL: this instance gives up its leadership',
      );
      const { token } = this.#term;
      this.#end('its loop made no progress');
      await this.#store.release(holder, token).catch(() => undefined);
      return;
    }
    const sentAt = monotonic();
    let reply: HoldReply;
    try {
      reply = await this.#store.hold(holder, this.#term?.token ?? 0, ttl, this.#force);
    } catch (error) {
      this.#tell(`the heartbeat failed: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    for (const listener of this.#timeListeners) listener(reply.now);
    switch (reply.status) {
      case 'HELD':
      case 'ACQUIRED':
        this.#force = false;
        this.#validUntil = sentAt + ttl - Math.max(500, ttl / 10);
        if (reply.status === 'ACQUIRED') this.#begin(reply.token, reply.epoch);
        return;
      case 'LOST':
        this.#end(`${reply.holder || 'nobody'} holds the leadership`);
        return;
      case 'STANDBY':
        this.#tell(`stands by: ${reply.holder} leads`);
    }
  }

  #begin(token: number, epoch: string): void {
    const { holder, monotonic, logger } = this.#options;
    let ended = false;
    this.#fedAt = monotonic();
    this.#term = {
      first: 0,
      last: BUCKETS - 1,
      epoch,
      token,
      holder,
      isValid: () => !ended && monotonic() < this.#validUntil,
      end: () => {
        ended = true;
      },
    };
    this.#told = '';
    logger.info({ token, holder }, 'leads all buckets');
    this.#changed();
  }

  #end(reason: string): void {
    if (this.#term === undefined) return;
    this.#term.end();
    this.#options.logger.info({ token: this.#term.token, reason }, 'leads no more');
    this.#term = undefined;
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Says the same thing once. */
  #tell(text: string): void {
    if (text === this.#told) return;
    this.#told = text;
    this.#options.logger.info(text);
  }
}
