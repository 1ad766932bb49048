import { CarillonError } from '../domain/errors.js';
import { checkQueueName } from '../domain/ids.js';
import type { WorkerSidePause } from '../queue/worker-side-pause.js';
import { ALL_QUEUES, type GateScripts } from '../redis/gate-scripts.js';

/** Pauses queues on both sides: nothing is dispatched, and workers fetch nothing. Runs under way go on to their end. */
export class QueuePauses {
  constructor(
    private readonly scripts: GateScripts,
    private readonly workers: WorkerSidePause,
  ) {}

  async pause(queue: string, note: string): Promise<void> {
    await this.scripts.set(checkQueueName(queue), { hold: true, note: note || null }, false);
    await this.workers.pause(queue);
  }

  /** @throws CarillonError CONFLICT while everything is paused */
  async resume(queue: string): Promise<void> {
    checkQueueName(queue);
    if ((await this.scripts.all()).get(ALL_QUEUES)?.hold) {
      throw new CarillonError('CONFLICT', 'everything is paused', {
        field: 'queue',
        given: queue,
        todo: 'Resume everything first: `carillon queues resume --all`.',
      });
    }
    await this.workers.resume(queue);
    await this.scripts.set(queue, { hold: null, note: null }, false);
  }

  /** The queues that workers had been paused for before stay so when everything is resumed. @returns those paused now */
  async pauseAll(queues: readonly string[], note: string): Promise<string[]> {
    const before = (await this.scripts.all()).get(ALL_QUEUES)?.paused ?? [];
    await this.scripts.set(ALL_QUEUES, { hold: true, note: note || null, paused: [...before] }, false);
    const paused = [...before];
    for (const queue of queues) {
      if (await this.workers.pause(queue)) paused.push(queue);
    }
    await this.scripts.set(ALL_QUEUES, { paused }, false);
    return paused;
  }

  /** @returns the queues whose workers go on */
  async resumeAll(): Promise<string[]> {
    const all = await this.scripts.all();
    const resumed = (all.get(ALL_QUEUES)?.paused ?? []).filter((queue) => !all.get(queue)?.hold);
    for (const queue of resumed) await this.workers.resume(queue);
    await this.scripts.set(ALL_QUEUES, {}, true);
    return resumed;
  }
}
