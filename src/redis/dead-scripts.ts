import { asList, asText } from './replies.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** `GONE`: no dead letter any more. `CHANGED`: put back and dead again since it was read. */
export type RequeueAnswer = 'REQUEUED' | 'CHANGED' | 'GONE';

/** What puts one dead letter back. */
export interface RequeuedLetter {
  id: string;
  /** When it died, as it was read; ms. */
  diedAt: number;
  lifo: boolean;
  /** Its new payload as JSON text; undefined keeps the text that it has. */
  data: string | undefined;
  /** Its checkpoint goes. */
  fresh: boolean;
  /** The schedule whose run it is; undefined for a job's. */
  schedule: string | undefined;
}

/** A death that came before a letter was put back. */
export interface EarlierDeath {
  /** ms since 1970 */
  diedAt: number;
  /** The first 300 bytes of what it failed with. */
  error: string;
  attempts: number;
}

/** What a dead run's hash tells besides BullMQ's own. */
export interface DeadTraces {
  requeued: number;
  worker: { id: string; host: string; pid: number; since: string } | undefined;
  token: string | undefined;
  checkpoint: unknown;
  /** The last five, oldest first. */
  deaths: EarlierDeath[];
}

/** Changes of a queue's dead letters: BullMQ's failed set. */
export class DeadScripts {
  constructor(private readonly shard: Shard) {}

  /** Each is put back as it was read, or not at all. At most 100. @throws CarillonError QUEUE_BROKEN */
  async requeue(queue: string, letters: readonly RequeuedLetter[]): Promise<RequeueAnswer[]> {
    const packed = letters.map(({ id, diedAt, lifo, data = '', fresh, schedule = '' }) => [
      id,
      diedAt,
      lifo ? 'RPUSH' : 'LPUSH',
      data,
      fresh,
      schedule,
    ]);
    const { status, rest } = await this.shard.run('requeue-dead', 'deny-oom', [
      this.shard.base,
      queue,
      JSON.stringify(packed),
      this.shard.namespace,
    ]);
    if (status !== 'OK') throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]));
    return asList(rest[0]).map((word) => asText(word) as RequeueAnswer);
  }

  /** What workers and earlier requeues wrote of one. Damage is shown as it is, or left out. */
  async traces(queue: string, id: string): Promise<DeadTraces> {
    const { client, base } = this.shard;
    await this.shard.ready();
    const fields = ['requeued', 'worker', 'token', 'checkpoint', 'deaths'].map((part) => `carillon:${part}`);
    const [requeued, worker, token, checkpoint, text] = await client.hmget(
      `${base}${queue}:${id}`,
      ...fields,
    );
    const deaths = parsedField(text);
    return {
      requeued: Number(requeued ?? 0),
      worker: parsedField(worker) as DeadTraces['worker'],
      token: token ?? undefined,
      checkpoint: parsedField(checkpoint),
      deaths: Array.isArray(deaths) ? deaths : [],
    };
  }

  /** Up to `limit` letters that died at `from` (ms) or later, the oldest first, without the first `offset` of them. */
  async page(
    queue: string,
    from: number,
    offset: number,
    limit: number,
  ): Promise<{ id: string; diedAt: number }[]> {
    const { client, base } = this.shard;
    await this.shard.ready();
    const failed = `${base}${queue}:failed`;
    const flat = await client.zrange(failed, from, '+inf', 'BYSCORE', 'LIMIT', offset, limit, 'WITHSCORES');
    const page: { id: string; diedAt: number }[] = [];
    for (let i = 0; i < flat.length; i += 2)
      page.push({ id: flat[i] as string, diedAt: Number(flat[i + 1]) });
    return page;
  }
}

function parsedField(text: string | null | undefined): unknown {
  if (text === null || text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
