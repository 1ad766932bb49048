import { Redis } from 'ioredis';

const PAGE = 5000;

/**
 * When each run of a schedule came into its BullMQ queue, by the ids of BullMQ's own events: Redis' clock, whatever the
 * workers do. Read as it grows, since BullMQ trims it.
 */
export class DispatchLog {
  /** ms from scheduled time to queue, of the runs scheduled in the window. */
  readonly lags: number[] = [];
  readonly #client: Redis;
  #from = Number.POSITIVE_INFINITY;
  #to = 0;
  #reading: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(url: string) {
    this.#client = new Redis(url);
  }

  /** Counts the runs that are scheduled from `from` to `to`, in ms. */
  start(from: number, to: number): void {
    [this.#from, this.#to] = [from, to];
    this.#reading = this.#read();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reading;
    this.#client.disconnect();
  }

  async #read(): Promise<void> {
    let after = '$';
    while (!this.#stopped) {
      const read = await this.#client.xread('COUNT', PAGE, 'BLOCK', 500, 'STREAMS', 'bull:q:events', after);
      for (const [id, fields] of read?.[0]?.[1] ?? []) {
        after = id;
        this.#count(Number(id.split('-')[0]), fields);
      }
    }
  }

  #count(at: number, fields: readonly string[]): void {
    if (fields[1] !== 'waiting') return;
    const scheduledFor = Number(/\d+$/.exec(fields[3] ?? '')?.[0]);
    if (scheduledFor >= this.#from && scheduledFor <= this.#to) this.lags.push(at - scheduledFor);
  }
}
