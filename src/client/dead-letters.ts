import { setTimeout as delay } from 'node:timers/promises';
import { checkCall } from '../config/call-options.js';
import { checkBoolean, checkInteger, checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { deadReasonOf } from '../domain/dead-reason.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { jobIdOfRun } from '../domain/ids.js';
import { parseInstant } from '../domain/instant.js';
import type { Job } from '../queue/job.js';
import { encodeData, JsonText } from '../queue/payload.js';
import type { DeadScripts } from '../redis/dead-scripts.js';
import type { WorkerRegistry } from '../redis/worker-registry.js';
import {
  checkDeadFilter,
  type DeadFilter,
  type DeadLetter,
  type DeadLetterDetails,
  type Letter,
  letterOf,
  matcherOf,
} from './dead-letter.js';
import { refuseEmptyFilter } from './filter-means.js';

/** How one is put back. */
export interface RequeueEdit {
  /** Another payload. */
  data?: unknown;
  /** Another payload as JSON text, which is kept as it is written. */
  dataText?: string;
  /** Whether its next attempt finds the checkpoint. Defaults to true, and to false where the payload is another one. */
  keepCheckpoint?: boolean;
}

export interface DeadChangeOptions {
  /** Tells which, and changes nothing. */
  dryRun?: boolean;
  /** At most so many. Defaults to 100,000. */
  limit?: number;
}

export interface RequeueOptions extends DeadChangeOptions {
  /** So many a second. Defaults to no limit. */
  rate?: number;
}

/** What became of each that was meant. */
export interface DeadChange {
  changed: string[];
  /** Gone or alive again before their turn. */
  skipped: string[];
}

/** What dead letters ask of their queue. */
export interface DeadLetterSource {
  readonly name: string;
  getJob(id: string): Promise<Job | undefined>;
  getJobLogs(id: string): Promise<{ logs: string[] }>;
}

const PAGE = 200;

/**
 * The dead letters of a queue: BullMQ's failed runs, of stock workers too. Nothing takes them away but `requeue`, `discard`
 * and the `removeOnFail` that a job itself asks for.
 */
export class DeadLetters {
  constructor(
    private readonly queue: DeadLetterSource,
    private readonly scripts: DeadScripts,
    private readonly workers: Pick<WorkerRegistry, 'repeatsOf'>,
    private readonly maxPayload: number,
  ) {}

  /**
   * Those that `filter` means, the oldest first.
   * @param options.limit 1 to 1000; defaults to 100.
   * @throws CarillonError INVALID_OPTION
   */
  async list(filter: DeadFilter = {}, options: { limit?: number } = {}): Promise<DeadLetter[]> {
    checkDeadFilter(filter);
    checkCall(options, ['limit']);
    const limit = options.limit === undefined ? 100 : checkInteger('limit', options.limit, 1, 1000);
    const found: Letter[] = [];
    for await (const job of this.#walk(filter)) {
      found.push(letterOf(job));
      if (found.length === limit) break;
    }
    return this.#withRepeats(found);
  }

  /** @throws CarillonError NOT_FOUND */
  async get(id: string): Promise<DeadLetterDetails> {
    const job = await this.#dead(id);
    const [{ logs }, { deaths, ...traces }, [letter]] = await Promise.all([
      this.queue.getJobLogs(id),
      this.scripts.traces(this.queue.name, id),
      this.#withRepeats([letterOf(job)]),
    ]);
    const attempts = job.opts.attempts ?? 0;
    return {
      ...(letter as DeadLetter),
      data: job.data,
      opts: job.opts,
      errors: [...(job.stacktrace ?? [])].reverse(),
      logs,
      startedAt: job.processedOn,
      starts: job.attemptsStarted,
      stalls: job.stalledCounter,
      ...traces,
      earlier: deaths.map((death) => ({
        ...death,
        reason: deadReasonOf({ failedReason: death.error, attemptsMade: death.attempts, attempts }),
      })),
    };
  }

  /**
   * Puts one back into its queue, with all its attempts again; its payload stays byte for byte, or is `data`, or the
   * JSON text `dataText`. Its idempotency key stays: what `run.once` recorded under it is not done again for another
   * payload.
   * @throws CarillonError NOT_FOUND; CONFLICT when somebody else was quicker; INVALID_OPTION
   */
  async requeue(id: string, edit: RequeueEdit = {}): Promise<void> {
    checkObject('edit', edit);
    rejectUnknown(edit as Record<string, unknown>, ['data', 'dataText', 'keepCheckpoint'], 'edit.');
    const { keepCheckpoint } = edit;
    if (keepCheckpoint !== undefined) checkBoolean('edit.keepCheckpoint', keepCheckpoint);
    const data = this.#payload(edit);
    const fresh = !(keepCheckpoint ?? data === undefined);
    if (!(await this.#revive(await this.#dead(id), data, fresh))) throw quicker(id);
  }

  /**
   * Puts all back that `filter` means, the oldest first; those that die again meanwhile are not met twice.
   * @throws CarillonError INVALID_OPTION, also for a filter that names nothing: `{ all: true }` means every one.
   */
  async requeueAll(filter: DeadFilter, options: RequeueOptions = {}): Promise<DeadChange> {
    checkCall(options, ['limit', 'rate'], ['dryRun']);
    const { rate } = options;
    if (rate !== undefined && !(typeof rate === 'number' && rate > 0 && Number.isFinite(rate))) {
      refuse('rate', rate, 'must be a number above 0', 'Give how many a second.');
    }
    const started = performance.now();
    let turn = 0;
    return this.#change(filter, options, async (job) => {
      if (rate !== undefined) {
        const wait = started + (turn * 1000) / rate - performance.now();
        if (wait > 0) await delay(wait);
        turn += 1;
      }
      return this.#revive(job);
    });
  }

  /** Removes one for good. @throws CarillonError NOT_FOUND, CONFLICT */
  async discard(id: string): Promise<void> {
    const job = await this.#dead(id);
    if (!(await gone(job))) throw quicker(id);
  }

  /** Removes all that `filter` means for good. @throws CarillonError as `requeueAll` */
  async discardAll(filter: DeadFilter, options: DeadChangeOptions = {}): Promise<DeadChange> {
    checkCall(options, ['limit'], ['dryRun']);
    return this.#change(filter, options, gone);
  }

  async #change(
    filter: DeadFilter,
    options: DeadChangeOptions,
    change: (job: Job) => Promise<boolean>,
  ): Promise<DeadChange> {
    const limit = options.limit === undefined ? 100_000 : checkInteger('limit', options.limit, 1, 1_000_000);
    refuseEmptyFilter(checkDeadFilter(filter), 'dead letter', 'a name, a text, a reason, a source or a time');
    // All are named before the first is changed: what dies again on the way is not met a second time.
    const meant: string[] = [];
    for await (const job of this.#walk(filter)) {
      meant.push(job.id ?? '');
      if (meant.length === limit) break;
    }
    if (options.dryRun === true) return { changed: meant, skipped: [] };
    const done: DeadChange = { changed: [], skipped: [] };
    for (const id of meant) {
      const job = await this.queue.getJob(id);
      const changed = job !== undefined && (await change(job));
      (changed ? done.changed : done.skipped).push(id);
    }
    return done;
  }

  /** Page by page by time of death, not by place: letters leave while this goes on, and none must be passed over for that. */
  async *#walk(filter: DeadFilter): AsyncGenerator<Job> {
    const matches = matcherOf(filter);
    let from = filter.from === undefined ? 0 : parseInstant(filter.from, 'filter.from');
    let seen = new Set<string>();
    for (let offset = 0; ; ) {
      const page = await this.scripts.page(this.queue.name, from, offset, PAGE);
      const fresh = page.filter(({ id }) => !seen.has(id));
      for (const job of await Promise.all(fresh.map(({ id }) => this.queue.getJob(id)))) {
        if (job !== undefined && matches(letterOf(job), job.stacktrace ?? [])) yield job;
      }
      if (page.length < PAGE) return;
      const last = page.at(-1)?.diedAt ?? from;
      // More than a page of one millisecond is walked by its places.
      offset = last === from ? offset + PAGE : 0;
      const those = page.filter(({ diedAt }) => diedAt === last).map(({ id }) => id);
      seen = new Set(last === from ? [...seen, ...those] : those);
      from = last;
    }
  }

  /** False when it is not dead any more, or another death than the one that was read. */
  async #revive(job: Job, data?: string, fresh = false): Promise<boolean> {
    const { id = '', finishedOn: diedAt = 0, opts } = job;
    const source = jobIdOfRun(id);
    const schedule = source === id ? undefined : source;
    const [answer] = await this.scripts.requeue(this.queue.name, [
      { id, diedAt, lifo: opts.lifo === true, data, fresh, schedule },
    ]);
    return answer === 'REQUEUED';
  }

  async #withRepeats(letters: readonly Letter[]): Promise<DeadLetter[]> {
    const names = letters.map(({ name }) => name);
    const repeats = await this.workers.repeatsOf(this.queue.name, names);
    return letters.map((letter, i) => ({ ...letter, repeats: repeats[i] as string }));
  }

  #payload({ data, dataText }: RequeueEdit): string | undefined {
    if (dataText === undefined) return data === undefined ? undefined : encodeData(data, this.maxPayload);
    if (data !== undefined) refuse('dataText', dataText, 'and data exclude each other', 'Give one of them.');
    try {
      return encodeData(new JsonText(dataText), this.maxPayload);
    } catch (error) {
      if (isCarillonError(error)) throw error;
      return refuse('dataText', dataText, 'is no JSON', 'Give the payload as JSON text.');
    }
  }

  async #dead(id: string): Promise<Job> {
    const job = await this.queue.getJob(id);
    if (job !== undefined && (await job.isFailed())) return job;
    throw new CarillonError(
      'NOT_FOUND',
      `the queue ${this.queue.name} has no dead letter ${JSON.stringify(id)}`,
      {
        field: 'id',
        given: id,
        todo:
          job === undefined
            ? '`carillon dead list` shows those it has.'
            : 'The job is alive; see `carillon jobs get`.',
      },
    );
  }
}

async function gone(job: Job): Promise<boolean> {
  if (!(await job.isFailed())) return false;
  try {
    await job.remove();
    return true;
  } catch (error) {
    if (await job.isFailed()) throw error;
    return false;
  }
}

function quicker(id: string): CarillonError {
  return new CarillonError('CONFLICT', `somebody else took the dead letter ${JSON.stringify(id)} meanwhile`, {
    field: 'id',
    given: id,
    todo: 'Look at it again.',
  });
}
