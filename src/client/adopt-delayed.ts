import { isCarillonError } from '../domain/errors.js';
import { checkJobId, checkJobName } from '../domain/ids.js';
import { decodeOptions } from '../queue/job-json.js';
import { type AdoptAnswer, type AdoptedJob, MoveScripts } from '../redis/move-scripts.js';
import { redisError, statusError } from '../redis/status.js';
import type { SubmitItem } from '../redis/submit-batch.js';
import { resolveOptions } from './job-options.js';
import type { Queue } from './queue.js';

/** A job that stays in BullMQ's delayed set, and why. */
export interface LeftJob {
  id: string;
  reason: string;
}

/** What the moving of a queue's delayed jobs came to, or, of a dry run, would come to. */
export interface AdoptReport {
  moved: number;
  /** Of these: jobs whose id BullMQ had made. They have another id now. */
  renamed: number;
  /** Due already, or on their way: BullMQ runs them. */
  due: number;
  /** Next runs of Job Schedulers, which go with their scheduler. */
  ofSchedulers: number;
  left: number;
  /** The first of those that are left. */
  examples: LeftJob[];
}

export interface AdoptOptions {
  dryRun?: boolean;
  /** Put before the ids that BullMQ made, integers that it keeps for itself. Defaults to `bull-`. */
  idPrefix?: string;
}

const PAGE = 200;
const MOST_EXAMPLES = 20;
/** Jobs that are added while we read push others past the page; another walk finds them. */
const WALKS = 10;
/** How often one job is read again because it changed in between. */
const READS = 3;
const MAX_DATA = 16_000_000;
const SCORE_PER_MS = 4096;
/** What BullMQ writes for a job that nobody has touched since it was added; counters count as untouched at 0. */
const UNTOUCHED = new Set([
  'name',
  'data',
  'opts',
  'timestamp',
  'delay',
  'priority',
  'deid',
  'parent',
  'parentKey',
]);
const COUNTERS = new Set(['atm', 'ats', 'stc', 'progress']);
const REASONS: Readonly<Partial<Record<AdoptAnswer, string>>> = {
  STARTED: 'it has been tried, or carries logs or progress',
  FLOW: 'it belongs to a flow',
  EXISTING: 'the timers hold another job of this id',
  CHANGED: 'somebody changes it all the time',
  BROKEN: 'a key that BullMQ keeps of it has the wrong type',
};

type Fields = Readonly<Record<string, string>>;
type Judged = { word: AdoptAnswer } | { reason: string } | { job: AdoptedJob };

/**
 * Moves the jobs of a queue's delayed set into the timers: each in one step, so that no crash loses or doubles one; a
 * repeat finishes. Id, name, data and options stay as they are; only ids that BullMQ made get a prefix.
 * @throws CarillonError QUEUE_BROKEN, OUT_OF_MEMORY, REDIS_UNAVAILABLE
 */
export async function adoptDelayed(queue: Queue, options: AdoptOptions = {}): Promise<AdoptReport> {
  try {
    return await new DelayedWalk(queue, options).run();
  } catch (error) {
    throw redisError(error);
  }
}

class DelayedWalk {
  readonly #report: AdoptReport = { moved: 0, renamed: 0, due: 0, ofSchedulers: 0, left: 0, examples: [] };
  readonly #scripts: MoveScripts;
  readonly #dryRun: boolean;
  readonly #idPrefix: string;
  readonly #seen = new Set<string>();
  /** By Redis' clock, in ms. */
  #startedAt = 0;

  constructor(
    private readonly queue: Queue,
    { dryRun = false, idPrefix = 'bull-' }: AdoptOptions,
  ) {
    this.#scripts = new MoveScripts(queue.backend.shard);
    this.#dryRun = dryRun;
    this.#idPrefix = idPrefix;
  }

  async run(): Promise<AdoptReport> {
    const { client } = this.queue.backend.shard;
    const type = await client.type(this.queue.toKey('delayed'));
    if (type !== 'zset' && type !== 'none') throw statusError('QUEUE_BROKEN', `delayed is a ${type}`);
    const [seconds] = await client.time();
    this.#startedAt = Number(seconds) * 1000;
    for (let walk = 0; walk < WALKS; walk++) {
      const moved = await this.#walk();
      if (this.#dryRun || moved === 0) break;
    }
    return this.#report;
  }

  /** Once through the set; what stays in it is passed over. */
  async #walk(): Promise<number> {
    const { client } = this.queue.backend.shard;
    let moved = 0;
    for (let offset = 0; ; ) {
      const page = await client.zrange(
        this.queue.toKey('delayed'),
        `${offset}`,
        `${offset + PAGE - 1}`,
        'WITHSCORES',
      );
      if (page.length === 0) return moved;
      const entries = new Map<string, number>();
      for (let i = 0; i < page.length; i += 2) entries.set(page[i] as string, Number(page[i + 1]));
      const gone = await this.#page(entries);
      moved += gone;
      offset += entries.size - gone;
    }
  }

  /** @returns how many are no longer in the set. */
  async #page(entries: ReadonlyMap<string, number>): Promise<number> {
    let open = [...entries.keys()].filter((id) => !this.#seen.has(id));
    let gone = 0;
    for (let read = 1; open.length > 0; read++) {
      const jobs: AdoptedJob[] = [];
      for (const [id, fields] of await this.#read(open)) {
        const judged = this.#judge(id, entries.get(id) ?? 0, fields);
        if ('job' in judged) jobs.push(judged.job);
        else this.#leave(id, judged);
      }
      const answers = this.#dryRun
        ? jobs.map((): AdoptAnswer => 'MOVED')
        : await this.#scripts.adopt(this.queue.name, jobs);
      open = [];
      for (const [i, job] of jobs.entries()) {
        const word = answers[i] as AdoptAnswer;
        if (word === 'CHANGED' && read < READS) open.push(job.bullId);
        else if (word === 'MOVED') {
          this.#report.moved++;
          if (job.item.jobId !== job.bullId) this.#report.renamed++;
          if (!this.#dryRun) gone++;
        } else this.#leave(job.bullId, { word });
      }
    }
    return gone;
  }

  async #read(ids: readonly string[]): Promise<[string, Fields][]> {
    const pipeline = this.queue.backend.shard.client.pipeline();
    for (const id of ids) pipeline.hgetall(this.queue.toKey(id));
    const replies = (await pipeline.exec()) ?? [];
    return ids.flatMap((id, i): [string, Fields][] => {
      const [error, fields] = replies[i] ?? [new Error('no reply'), undefined];
      if (!error) return [[id, fields as Fields]];
      if (!error.message.startsWith('WRONGTYPE')) throw error;
      this.#leave(id, { word: 'BROKEN' });
      return [];
    });
  }

  #leave(id: string, why: { word: AdoptAnswer } | { reason: string }): void {
    this.#seen.add(id);
    const report = this.#report;
    if ('word' in why && why.word === 'GONE') report.due++;
    else if ('word' in why && why.word === 'OWNED') report.ofSchedulers++;
    else {
      const reason = 'reason' in why ? why.reason : (REASONS[why.word] ?? why.word);
      report.left++;
      if (report.examples.length < MOST_EXAMPLES) report.examples.push({ id, reason });
    }
  }

  /** What the script would say, for dry runs, and the job as the timers are to hold it. */
  #judge(id: string, score: number, fields: Fields): Judged {
    if (fields.rjk !== undefined) return { word: 'OWNED' };
    if (score / SCORE_PER_MS <= this.#startedAt) return { word: 'GONE' };
    if (fields.name === undefined || fields.data === undefined) return { reason: 'it has no data' };
    if ((fields.parentKey ?? '') !== '') return { word: 'FLOW' };
    const touched = Object.entries(fields).some(
      ([field, value]) => !UNTOUCHED.has(field) && !(COUNTERS.has(field) && value === '0'),
    );
    if (touched) return { word: 'STARTED' };
    try {
      const options = fields.opts ?? '{}';
      const item = itemOf(this.#idOf(id), Math.floor(score / SCORE_PER_MS), fields, options);
      return { job: { bullId: id, options, item } };
    } catch (error) {
      if (isCarillonError(error)) return { reason: error.message };
      if (error instanceof SyntaxError) return { reason: 'its data or options are no JSON' };
      throw error;
    }
  }

  #idOf(id: string): string {
    return checkJobId(`${Number.parseInt(id, 10)}` === id ? this.#idPrefix + id : id);
  }
}

function itemOf(jobId: string, at: number, fields: Fields, options: string): SubmitItem {
  const { name = '', data = '' } = fields;
  JSON.parse(data);
  // What belongs to one adding, or is kept elsewhere in the record.
  const { delay, jobId: _id, timestamp: _time, priority: _priority, ...rest } = decodeOptions(options);
  const priority = Number(fields.priority ?? 0);
  const resolved = resolveOptions(priority === 0 ? rest : { ...rest, priority });
  const bytes = Buffer.byteLength(data);
  if (bytes > MAX_DATA) throw new SyntaxError(`${bytes} bytes`);
  return {
    jobId,
    chosen: true,
    time: at,
    relative: false,
    replace: false,
    window: 0,
    name: checkJobName(name),
    data,
    opts: resolved.text,
    priority: resolved.priority,
    lifo: resolved.lifo,
    timestamp: Number(fields.timestamp) || undefined,
    dedup: resolved.dedup,
    deadline: resolved.deadline !== undefined,
  };
}
