import type { Redis } from 'ioredis';
import { identityOf } from '../domain/ids.js';
import type { Keys } from '../redis/keys.js';

/** An end that BullMQ does not know of. Times in ms. */
export interface HistoryEntry {
  at: number;
  /** Queue and id, with a colon between. */
  job: string;
  scheduledFor: number;
  /** `skipped`, `cancelled`, `deleted`, `quarantined`, `discarded`, `suspended`, `ended`. */
  what: string;
  /** Why: `expired` for a job past its deadline, else what somebody said. */
  reason: string;
}

/** Which ends are asked for. */
export interface HistoryOptions {
  /** Entries, 1 to 1,000. Defaults to 100. */
  limit?: number;
  /** Only this queue's. */
  queue?: string;
  /** Only this job's or schedule's, of that queue. */
  jobId?: string;
}

const PAGE = 1000;

/** The newest ends, newest first. The options are checked already. */
export async function readHistory(
  client: Redis,
  keys: Keys,
  { limit = 100, queue, jobId }: HistoryOptions,
): Promise<HistoryEntry[]> {
  const isMeant = ({ job }: HistoryEntry) =>
    queue === undefined ||
    (jobId === undefined ? job.startsWith(`${queue}:`) : job === identityOf(queue, jobId));
  const found: HistoryEntry[] = [];
  for (let from = '+'; ; ) {
    const page = await client.xrevrange(keys.history, from, '-', 'COUNT', PAGE);
    found.push(...page.map(([, fields]) => entryOf(fields)).filter(isMeant));
    const oldest = page.at(-1)?.[0];
    if (found.length >= limit || page.length < PAGE || oldest === undefined) return found.slice(0, limit);
    from = `(${oldest}`;
  }
}

function entryOf(fields: readonly string[]): HistoryEntry {
  const entry = new Map<string, string>();
  for (let i = 0; i < fields.length; i += 2) entry.set(fields[i] as string, fields[i + 1] as string);
  return {
    at: Number(entry.get('at') ?? 0),
    job: entry.get('job') ?? '',
    scheduledFor: Number(entry.get('scheduledFor') ?? 0),
    what: entry.get('what') ?? '',
    reason: entry.get('reason') ?? '',
  };
}
