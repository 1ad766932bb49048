import type { PopResult } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';

/** A line about one queue, record or bucket is logged at most this often (ms). */
const QUIET = 10_000;

export interface Readiness {
  ready: boolean;
  /** Why not, or what is being worked around. */
  reason?: string;
  /** Whether this instance leads anything now. */
  leading: boolean;
  popped: number;
  quarantined: number;
  repaired: number;
  /** Queues that are parked because a key of theirs has the wrong type. */
  brokenQueues: string[];
}

/** What the person on call asks of a scheduler: is it ready, and if not, why. */
export class DispatchReport {
  #held: string | undefined;
  #refused: readonly number[] = [];
  #leading = false;
  #popped = 0;
  #quarantined = 0;
  #repaired = 0;
  readonly #broken = new Set<string>();
  readonly #saidAt = new Map<string, number>();

  constructor(
    private readonly logger: Logger,
    private readonly monotonic: () => number,
  ) {}

  /** Dispatch cannot go on. True when that is news. */
  held(reason: string, text: string): boolean {
    const line = `${reason}: ${text}`;
    const news = this.#held !== line;
    this.#held = line;
    return news;
  }

  leading(leading: boolean): void {
    this.#leading = leading;
  }

  /** Buckets that it should serve and whose fences are another's. */
  refused(buckets: readonly number[]): void {
    this.#refused = buckets;
  }

  /** Redis answers, to a stand-by. */
  reached(): void {
    this.#held = undefined;
  }

  popped(reply: PopResult): void {
    if (this.#held !== undefined) this.logger.info('dispatch goes on');
    this.#held = undefined;
    this.#popped += reply.popped;
    for (const line of reply.trouble) this.#trouble(line);
  }

  /** A gate let runs through. */
  drained({ moved, trouble }: { moved: number; trouble: readonly string[] }): void {
    this.#popped += moved;
    for (const line of trouble) this.#trouble(line);
  }

  #trouble(line: string): void {
    const [word = '', subject = ''] = line.split(' ', 2);
    if (word === 'QUARANTINED' || word === 'ID_TAKEN') this.#quarantined++;
    if (word === 'REPAIRED') this.#repaired++;
    if (word === 'QUEUE_BROKEN') this.#broken.add(subject);
    const key = word === 'QUEUE_BROKEN' ? `${word} ${subject}` : word;
    const said = this.#saidAt.get(key);
    if (said !== undefined && this.monotonic() - said < QUIET) return;
    this.#saidAt.set(key, this.monotonic());
    this.logger.error(line);
  }

  repaired(count: number): void {
    this.#repaired += count;
  }

  /** The queues that wait for a probe. */
  get brokenQueues(): string[] {
    return [...this.#broken];
  }

  /** Found parked when the scheduler started, or by another instance. */
  found(queue: string): void {
    this.#broken.add(queue);
  }

  cured(queue: string): void {
    if (this.#broken.delete(queue)) this.logger.info({ queue }, 'the queue is cured; its parked jobs go on');
  }

  readiness(): Readiness {
    const reason = this.#held ?? this.#refusal();
    return {
      ready: reason === undefined,
      ...(reason === undefined ? {} : { reason }),
      leading: this.#leading,
      popped: this.#popped,
      quarantined: this.#quarantined,
      repaired: this.#repaired,
      brokenQueues: this.brokenQueues,
    };
  }

  #refusal(): string | undefined {
    const count = this.#refused.length;
    if (count === 0) return undefined;
    return `FENCED: ${count === 1 ? '1 bucket has a fence' : `${count} buckets have fences`} of another leader or of another store; if nobody else leads there, run \`carillon fence adopt\``;
  }
}
