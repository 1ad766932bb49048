import type { Shard } from './shard.js';

/** What is known of a run that BullMQ has, besides BullMQ's own. */
export interface RunFacts {
  /** Fencing token of the last attempt. */
  token?: string;
  /** Who holds it now, as far as Carillon's workers tell; ms from now until its lock ends. */
  worker?: { id: string; host: string; pid: number; since: string } | 'a worker of BullMQ alone';
  lockEndsIn?: number;
  checkpoint?: unknown;
  asked?: { verb: string; reason: string };
}

const FIELDS = ['token', 'lock', 'worker', 'checkpoint', 'asked'] as const;

/** Reads the facts of one run. */
export async function readRunFacts(shard: Shard, queue: string, runId: string): Promise<RunFacts> {
  const { client, base } = shard;
  const key = `${base}${queue}:${runId}`;
  await shard.ready();
  const [fields, lock, left] = await Promise.all([
    client.hmget(key, ...FIELDS.map((field) => `carillon:${field}`)),
    client.get(`${key}:lock`),
    client.pttl(`${key}:lock`),
  ]);
  const [token, claimed, worker, checkpoint, asked] = fields;
  const facts: RunFacts = {};
  if (token) facts.token = token;
  if (lock !== null) {
    facts.worker = claimed === lock && worker ? parsed(worker) : 'a worker of BullMQ alone';
    facts.lockEndsIn = left;
  }
  if (checkpoint) facts.checkpoint = parsed(checkpoint);
  if (asked && lock !== null) facts.asked = parsed(asked);
  return facts;
}

/** Damage is shown as it is. */
function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    return text as T;
  }
}
