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
}

/** Changes of a queue's dead letters: BullMQ's failed set. */
export class DeadScripts {
  constructor(private readonly shard: Shard) {}

  /** Each is put back as it was read, or not at all. At most 100. @throws CarillonError QUEUE_BROKEN */
  async requeue(queue: string, letters: readonly RequeuedLetter[]): Promise<RequeueAnswer[]> {
    const packed = letters.map(({ id, diedAt, lifo, data = '' }) => [
      id,
      diedAt,
      lifo ? 'RPUSH' : 'LPUSH',
      data,
    ]);
    const { status, rest } = await this.shard.run('requeue-dead', 'deny-oom', [
      this.shard.base,
      queue,
      JSON.stringify(packed),
    ]);
    if (status !== 'OK') throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]));
    return asList(rest[0]).map((word) => asText(word) as RequeueAnswer);
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
