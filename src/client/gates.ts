import { checkInteger, checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { defaultBurst, type GateLimits } from '../domain/gate.js';
import { checkQueueName } from '../domain/ids.js';
import { ALL_QUEUES, type GateChange, type GateScripts } from '../redis/gate-scripts.js';

/** Runs a second, or `max` in a duration. */
export type Rate = number | { max: number; duration: Duration };

/** The limits of a queue's gate. What is left out is not limited; durations are ms or texts such as `'1m'`. */
export interface GateOptions {
  /** How many runs go into the queue: a number a second, or `{ max, duration }`. */
  rate?: Rate;
  /** How many go at once after a quiet time or a hold. Defaults to what goes in a second, at least one. */
  burst?: number;
  /** Above so many runs in BullMQ's wait and prioritized lists nothing more is put there. */
  maxWaiting?: number;
  /** The rate of each tenant (`group` of a job). */
  groupRate?: Rate;
  groupBurst?: number;
  /** A run that is older by this goes before one of the next better priority. Defaults to `'60s'`. */
  ageing?: Duration;
  /** The priority by which a run without one is ordered. Defaults to 10. */
  unmarkedPriority?: number;
}

/** A gate as it stands, also one that only a hold or a pause made. Times in ms. */
export interface GateInfo extends GateLimits {
  queue: string;
  /** Runs whose time has come and that it holds. */
  held: number;
}

const KNOWN = ['rate', 'burst', 'maxWaiting', 'groupRate', 'groupBurst', 'ageing', 'unmarkedPriority'];
const MOST = 1_000_000_000;
const LONGEST_NOTE = 1000;

/** The gates of a namespace: what limits the dispatch of its queues. Changes hold from the next batch on. */
export class Gates {
  constructor(private readonly scripts: GateScripts) {}

  /** Sets the limits of a queue anew; a hold and a pause stay. @throws CarillonError INVALID_OPTION, INVALID_ID, INVALID_DURATION */
  async set(queue: string, options: GateOptions): Promise<GateInfo> {
    return this.#change(queue, { ...NO_LIMITS, ...checkGate(options) });
  }

  /** Takes the limits and the hold away: what is held goes at once. A pause stays. */
  async clear(queue: string): Promise<void> {
    await this.scripts.set(checkQueueName(queue), { ...NO_LIMITS, hold: null }, false);
  }

  /** Dispatches nothing of the queue until it is released. */
  async hold(queue: string, note = ''): Promise<GateInfo> {
    return this.#change(queue, { hold: true, note: checkNote(note) || null });
  }

  /** Ends a hold; a queue that is paused too stays so until it is resumed. */
  async release(queue: string): Promise<GateInfo> {
    return this.#change(queue, { hold: null });
  }

  /** Undefined without a gate. */
  async get(queue: string): Promise<GateInfo | undefined> {
    return (await this.list()).find((gate) => gate.queue === checkQueueName(queue));
  }

  /** Every gate, and what is held where no gate is any more. */
  async list(): Promise<GateInfo[]> {
    const gates = await this.scripts.all();
    const names = [...new Set([...gates.keys(), ...(await this.scripts.queues())])];
    const queues = names.filter((queue) => queue !== ALL_QUEUES).sort();
    const held = await this.scripts.held(queues);
    return queues.map((queue, i) => ({ queue, held: held[i] ?? 0, ...gates.get(queue) }));
  }

  /** The pause of everything, if there is one. */
  async everything(): Promise<GateLimits | undefined> {
    return (await this.scripts.all()).get(ALL_QUEUES);
  }

  async #change(queue: string, change: GateChange): Promise<GateInfo> {
    const limits = await this.scripts.set(checkQueueName(queue), change, false);
    const [held = 0] = await this.scripts.held([queue]);
    return { queue, held, ...limits };
  }
}

/** The gate of one queue. */
export class QueueGate {
  constructor(
    private readonly gates: Gates,
    private readonly queue: string,
  ) {}

  /** @throws CarillonError INVALID_OPTION, INVALID_DURATION */
  set(options: GateOptions): Promise<GateInfo> {
    return this.gates.set(this.queue, options);
  }

  /** Undefined without one. */
  get(): Promise<GateInfo | undefined> {
    return this.gates.get(this.queue);
  }

  clear(): Promise<void> {
    return this.gates.clear(this.queue);
  }

  hold(note?: string): Promise<GateInfo> {
    return this.gates.hold(this.queue, note);
  }

  release(): Promise<GateInfo> {
    return this.gates.release(this.queue);
  }
}

const NO_LIMITS: GateChange = {
  max: null,
  duration: null,
  burst: null,
  maxWaiting: null,
  groupMax: null,
  groupDuration: null,
  groupBurst: null,
  ageing: null,
  unmarked: null,
};

function checkGate(given: GateOptions): GateLimits {
  const options = checkObject('gate', given) as GateOptions;
  rejectUnknown(options as Record<string, unknown>, KNOWN);
  const limits: GateLimits = {};
  const rate = options.rate === undefined ? undefined : checkRate('rate', options.rate);
  if (rate !== undefined) Object.assign(limits, rate, { burst: burstOf('burst', options.burst, rate) });
  else if (options.burst !== undefined) needsRate('burst', options.burst, 'rate');
  if (options.maxWaiting !== undefined)
    limits.maxWaiting = checkInteger('maxWaiting', options.maxWaiting, 1, MOST);
  if (options.groupRate !== undefined) {
    const group = checkRate('groupRate', options.groupRate);
    limits.groupMax = group.max;
    limits.groupDuration = group.duration;
    limits.groupBurst = burstOf('groupBurst', options.groupBurst, group);
  } else if (options.groupBurst !== undefined) needsRate('groupBurst', options.groupBurst, 'groupRate');
  if (options.ageing !== undefined) limits.ageing = parseDuration(options.ageing, { field: 'ageing' });
  if (options.unmarkedPriority !== undefined)
    limits.unmarked = checkInteger('unmarkedPriority', options.unmarkedPriority, 1, 2_097_152);
  if (Object.keys(limits).length === 0)
    refuse('gate', given, 'limits nothing', 'Give a rate or maxWaiting; clear takes a gate away.');
  return limits;
}

function checkRate(field: string, rate: Rate): { max: number; duration: number } {
  if (typeof rate === 'number') return { max: checkInteger(field, rate, 1, MOST), duration: 1000 };
  if (typeof rate !== 'object' || rate === null) {
    refuse(
      field,
      rate,
      'must be a number a second, or { max, duration }',
      `For example 50, or { max: 100, duration: '1m' }.`,
    );
  }
  rejectUnknown(rate as Record<string, unknown>, ['max', 'duration'], `${field}.`);
  const { max, duration } = rate;
  const ms = parseDuration(duration, { field: `${field}.duration` });
  return {
    max: checkInteger(`${field}.max`, max, 1, MOST),
    duration: checkInteger(`${field}.duration`, ms, 1, MOST),
  };
}

function burstOf(field: string, burst: number | undefined, rate: { max: number; duration: number }): number {
  return burst === undefined ? defaultBurst(rate.max, rate.duration) : checkInteger(field, burst, 1, MOST);
}

function needsRate(field: string, given: unknown, rate: string): never {
  return refuse(field, given, `means nothing without ${rate}`, `Give ${rate} as well.`);
}

/** @throws CarillonError INVALID_OPTION */
export function checkNote(note: unknown): string {
  if (typeof note === 'string' && note.length <= LONGEST_NOTE && note.isWellFormed()) return note;
  return refuse('note', note, `must be a text of at most ${LONGEST_NOTE} characters`, 'Give a short text.');
}
