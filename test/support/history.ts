import type { Spine } from './spine.js';

/** What a queue's event stream tells of the runs that entered it, held against what should have entered. */
export class History {
  /** Run id → how often it was stored. */
  readonly added = new Map<string, number>();
  /** Run id → when it became visible to workers, each time; ms of Redis' clock. */
  readonly waiting = new Map<string, number[]>();

  /** Keeps every event of a queue; call it before the first job, since BullMQ keeps 10,000. */
  static async keep(spine: Spine, ...queues: string[]): Promise<void> {
    for (const queue of queues) {
      await spine.client.hset(spine.bull(queue, 'meta'), 'opts.maxLenEvents', 100_000_000);
    }
  }

  static async read(spine: Spine, queue: string): Promise<History> {
    const history = new History();
    let from = '-';
    for (;;) {
      const page = await spine.client.xrange(spine.bull(queue, 'events'), from, '+', 'COUNT', 10_000);
      for (const [id, fields] of page) history.#take(id, fields);
      const last = page.at(-1);
      if (last === undefined) return history;
      from = `(${last[0]}`;
    }
  }

  /**
   * @param expected run id → the time before which it must not enter, in ms; `undefined` where no time is known.
   * @returns ids that never entered, entered more than once, entered before their time, or were not expected at all.
   */
  check(expected: ReadonlyMap<string, number | undefined>): HistoryVerdict {
    const verdict: HistoryVerdict = { lost: [], doubled: [], early: [], strangers: [] };
    for (const [id, notBefore] of expected) {
      const times = this.waiting.get(id) ?? [];
      if (times.length === 0) verdict.lost.push(id);
      if (times.length > 1 || (this.added.get(id) ?? 0) > 1) verdict.doubled.push(id);
      if (notBefore !== undefined && times.some((time) => time < notBefore)) verdict.early.push(id);
    }
    verdict.strangers = [...this.waiting.keys()].filter((id) => !expected.has(id));
    return verdict;
  }

  #take(id: string, fields: string[]): void {
    const event: Record<string, string> = {};
    for (let i = 0; i < fields.length; i += 2) event[fields[i] as string] = fields[i + 1] as string;
    const jobId = event.jobId ?? '';
    if (event.event === 'added') this.added.set(jobId, (this.added.get(jobId) ?? 0) + 1);
    if (event.event === 'waiting' && event.prev === undefined) {
      const times = this.waiting.get(jobId) ?? [];
      times.push(Number(id.split('-')[0]));
      this.waiting.set(jobId, times);
    }
  }
}

export interface HistoryVerdict {
  lost: string[];
  doubled: string[];
  early: string[];
  strangers: string[];
}

/** Everything ran once, nothing early, nothing else. */
export const SPOTLESS: HistoryVerdict = { lost: [], doubled: [], early: [], strangers: [] };
