import type { Redis } from 'ioredis';
import { Service } from '../support/service.js';

/** Hears that a job was stored which is due within the poll. A hint only: what it misses, the next poll finds. */
export class WakeListener extends Service {
  readonly #heard = (_channel: string, message: string) => {
    const at = Number(message);
    if (Number.isFinite(at)) this.onHint(at);
  };

  constructor(
    private readonly client: Redis,
    private readonly channel: string,
    private readonly onHint: (at: number) => void,
  ) {
    super();
  }

  protected override async onStart(): Promise<void> {
    this.client.on('message', this.#heard);
    await this.client.subscribe(this.channel);
  }

  protected override async onStop(): Promise<void> {
    this.client.off('message', this.#heard);
    if (this.client.status === 'ready') await this.client.unsubscribe(this.channel).catch(() => undefined);
  }
}
