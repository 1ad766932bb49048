import { bucketOfBytes } from '../domain/buckets.js';
import { CarillonError } from '../domain/errors.js';
import { identityOf } from '../domain/ids.js';
import { FLAGS } from './record.js';

/** What a submit did with a job. */
export type SubmitAnswer = 'created' | 'existing' | 'replaced' | 'fired';

/** One job of a submit, checked by the client. */
export interface SubmitItem {
  jobId: string;
  /** The caller chose the id: duplicates are possible and asked for. */
  chosen: boolean;
  /** ms since 1970, or ms from now when `relative`. */
  time: number;
  relative: boolean;
  replace: boolean;
  /** ms; how long an ended id answers `fired`; 0 for BullMQ's own rule: an id is free once its hash is gone. */
  window: number;
  name: string;
  /** JSON text. */
  data: string;
  /** BullMQ's encoded options as JSON text; empty stands for `{"attempts":0}`. */
  opts: string;
  priority: number;
  lifo: boolean;
  /** ms; only when the caller gave one, else the time of acceptance counts. */
  timestamp: number | undefined;
  /** The options hold deduplication. */
  dedup: boolean;
  /** So they do a deadline. */
  deadline: boolean;
  /** What it waits for besides its time. */
  after?: AfterEntry;
}

/** Policies when a parent's outcome is not what the child waits for. */
export type ParentPolicy = 'cancel' | 'hold' | 'run';
export type ParentCondition = 'success' | 'failure' | 'completion';

/** The parents of a child as `T:<b>:after` holds them: identity, on, and the outcome once it is known. */
export interface AfterEntry {
  e: [identity: string, on: ParentCondition, outcome: string][];
  f: ParentPolicy;
  l: ParentPolicy;
  /** How and why it ended by policy; then nothing waits any more. */
  x?: [what: string, reason: string];
}

export interface SubmitResult {
  answer: SubmitAnswer;
  /** The id of the job that stands: another one's, when deduplicated. */
  jobId: string;
  /** ms; for a job that BullMQ holds already, as far as it tells. */
  scheduledFor: number;
  /** Redis' clock at the call, ms. */
  now: number;
}

/** Items of one script call: it stays under about 5 ms. */
export const SUBMIT_ITEMS = 250;
export const SUBMIT_BYTES = 256 * 1024;

const ITEM = { delay: 1, chosen: 2, replace: 4 } as const;
const LIFO = 0x1000000;
const FIRST_BYTES = 16 * 1024;
/** The longest that header, optional fields and the length fields of one item get. */
const FIXED_BYTES = 64;

/** The answer bytes of lua/lib/request.lua; 0 and 7 refuse one item without touching the others. */
const ANSWERS: Readonly<Record<number, SubmitAnswer | 'ID_IN_USE' | 'OTHER_PARENTS'>> = {
  0: 'ID_IN_USE',
  1: 'created',
  2: 'existing',
  3: 'replaced',
  4: 'fired',
  7: 'OTHER_PARENTS',
};

/**
 * The packed items of one script call. An item is B flags, B record flags, B bucket, I2 index, I2 identity length, I6 time, I4
 * length of the rest, then the identity and the rest: a record's bytes from the length of the name on (see record.ts). Texts are
 * written straight into one buffer: a bulk is as fast as this loop.
 */
export class SubmitBatch {
  readonly items: SubmitItem[] = [];
  readonly #afters: Record<string, AfterEntry> = {};
  #waits = false;
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #end = 0;

  constructor(private readonly queue: string) {}

  /** ms; all items of one call share it. */
  get window(): number {
    return this.items[0]?.window ?? 0;
  }

  /** JSON: an item's place, from 1, and what it waits for; empty when none waits. */
  get afters(): string {
    return this.#waits ? JSON.stringify(this.#afters) : '';
  }

  get packed(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  /**
   * Packs one more item; false when the call is full without it. The first always fits.
   * @param index tells it from the others of its request, 0 to 65535: a repeat of the request gives it the same one.
   */
  add(item: SubmitItem, index = this.items.length): boolean {
    if (this.items.length >= SUBMIT_ITEMS) return false;
    if (this.items.length > 0 && item.window !== this.window) return false;
    const text = item.name + item.data + item.opts;
    const identity = identityOf(this.queue, item.jobId);
    const start = this.#end;
    // UTF-8 takes at most three bytes for each unit of UTF-16.
    this.#reserve(FIXED_BYTES + (identity.length + text.length) * 3);
    const bytes = this.#bytes;
    const identityStart = start + 17;
    const identityLength = bytes.write(identity, identityStart);
    const restStart = identityStart + identityLength;
    const ordered = item.priority > 0 || item.lifo;
    const textStart = restStart + 4 + (ordered ? 4 : 0) + (item.timestamp === undefined ? 0 : 6);
    const textLength = bytes.write(text, textStart);
    const end = textStart + textLength;
    if (end > SUBMIT_BYTES && this.items.length > 0) return false;

    bytes[start] =
      (item.relative ? ITEM.delay : 0) | (item.chosen ? ITEM.chosen : 0) | (item.replace ? ITEM.replace : 0);
    bytes[start + 1] =
      (ordered ? FLAGS.priority : 0) |
      (item.timestamp === undefined ? 0 : FLAGS.timestamp) |
      (item.dedup ? FLAGS.dedup : 0) |
      (item.deadline ? FLAGS.deadline : 0) |
      (item.chosen ? 0 : FLAGS.generated);
    bytes[start + 2] = bucketOfBytes(bytes, identityStart, restStart);
    writeUint(bytes, index, start + 3, 2);
    writeUint(bytes, identityLength, start + 5, 2);
    writeUint(bytes, item.time, start + 7, 6);
    writeUint(bytes, end - restStart, start + 13, 4);
    const plain = textLength === text.length;
    bytes[restStart] = plain ? item.name.length : Buffer.byteLength(item.name);
    writeUint(bytes, plain ? item.data.length : Buffer.byteLength(item.data), restStart + 1, 3);
    let position = restStart + 4;
    if (ordered) {
      writeUint(bytes, item.priority + (item.lifo ? LIFO : 0), position, 4);
      position += 4;
    }
    if (item.timestamp !== undefined) writeUint(bytes, item.timestamp, position, 6);
    this.#end = end;
    this.items.push(item);
    if (item.after !== undefined) {
      this.#afters[this.items.length] = item.after;
      this.#waits = true;
    }
    return true;
  }

  /**
   * Reads the script's compact answer.
   * @param answers one byte an item.
   * @param exceptions index, id and scheduled time of each item whose id or time is not the one that was asked for.
   * @returns for an item whose id is a schedule's, its own refusal: the others stand.
   */
  results(
    now: number,
    answers: Buffer,
    exceptions: readonly { index: number; jobId: string; at: number }[],
  ): (SubmitResult | CarillonError)[] {
    const results = this.items.map((item, index): SubmitResult | CarillonError => {
      const answer = ANSWERS[answers[index] ?? -1];
      if (answer === undefined) throw new CarillonError('BAD_SCRIPT', 'submit left an item unanswered');
      if (answer === 'ID_IN_USE') return idInUse(item.jobId);
      if (answer === 'OTHER_PARENTS') return otherParents(item.jobId);
      return { answer, jobId: item.jobId, scheduledFor: item.relative ? now + item.time : item.time, now };
    });
    for (const { index, jobId, at } of exceptions) {
      const result = results[index];
      if (result !== undefined && !(result instanceof CarillonError))
        Object.assign(result, { jobId, scheduledFor: at });
    }
    return results;
  }

  #reserve(more: number): void {
    const wanted = this.#end + more;
    if (wanted <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(wanted, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#end);
    this.#bytes = grown;
  }
}

function idInUse(jobId: string): CarillonError {
  return new CarillonError('ID_IN_USE', 'a schedule and a one-time job of one queue cannot share an id', {
    field: 'jobId',
    given: jobId,
    todo: 'Give one of the two another id.',
  });
}

function otherParents(jobId: string): CarillonError {
  return new CarillonError('CONFLICT', `the job ${jobId} is there and waits for other jobs than these`, {
    field: 'after',
    todo: 'Give it the same `after` and policies, another id, or cancel the one that is there first.',
  });
}

/** Big-endian, by hand: Buffer’s own checks cost more than the writing. */
function writeUint(bytes: Buffer, value: number, position: number, length: number): void {
  let rest = value;
  for (let i = position + length - 1; i >= position; i--) {
    const high = Math.floor(rest / 256);
    bytes[i] = rest - high * 256;
    rest = high;
  }
}
