import type { JobRecord } from '../redis/record.js';
import { FLAGS } from '../redis/record.js';
import { BullJob, type JobJson } from './bullmq.js';

/** What a pending job does not have yet; BullMQ leaves these out as well. */
type NotYet = 'failedReason' | 'returnvalue';

/** A pending job as BullMQ shows a delayed one. */
export function jobJsonOf(jobId: string, record: JobRecord): JobJson {
  const delay = Math.max(0, record.at - record.timestamp);
  const opts = BullJob.optsFromJSON(record.opts === '' ? '{"attempts":0}' : record.opts);
  opts.delay = delay;
  if ((record.flags & FLAGS.generated) === 0) opts.jobId = jobId;
  const json: Omit<JobJson, NotYet> = {
    id: jobId,
    name: record.name,
    data: record.data,
    opts,
    progress: 0,
    delay,
    priority: record.priority,
    timestamp: record.timestamp,
    attemptsMade: 0,
    attemptsStarted: 0,
    stalledCounter: 0,
  };
  if (opts.deduplication !== undefined) json.deduplicationId = opts.deduplication.id;
  return json as JobJson;
}

/** Options as they are stored, under the names that people write. */
export function decodeOptions(text: string): Record<string, unknown> {
  return BullJob.optsFromJSON(text) as Record<string, unknown>;
}

/** What a run's options hold besides the producer's: `<namespace> <scheduled time> <incarnation>`. */
const MARK = 'carillon';

/** The scheduled time in ms that a run in BullMQ carries; undefined for a job that did not come from a timer. */
export function takeMark(opts: object): number | undefined {
  const marked = opts as { [MARK]?: unknown };
  const mark = marked[MARK];
  if (typeof mark !== 'string') return undefined;
  delete marked[MARK];
  const time = Number(mark.split(' ')[1]);
  return Number.isFinite(time) ? time : undefined;
}
