import { CarillonError } from '../domain/errors.js';
import { checkQueueName } from '../domain/ids.js';
import type { WorkerSidePause } from '../queue/worker-side-pause.js';
import { ALL_QUEUES, type GateScripts } from '../redis/gate-scripts.js';
import { checkNote } from './gates.js';

/**
 * Pauses queues on both sides: nothing is dispatched, and workers fetch nothing. Runs under way go on to their end. Who
 * pauses goes on record before its workers do, so that one who is killed in between leaves nothing that cannot be resumed.
 */
export class QueuePauses {
  constructor(
    private readonly scripts: GateScripts,
    private readonly workers: WorkerSidePause,
  ) {}

  /** @throws CarillonError INVALID_ID, INVALID_OPTION */
  async pause(queue: string, note: string): Promise<void> {
    await this.scripts.set(
      checkQueueName(queue),
      { paused: true, pauseNote: checkNote(note) || null },
      false,
    );
    await this.workers.pause(queue);
  }

  /** @throws CarillonError CONFLICT while everything is paused */
  async resume(queue: string): Promise<void> {
    checkQueueName(queue);
    if ((await this.scripts.all()).get(ALL_QUEUES)?.paused) {
      throw new CarillonError('CONFLICT', 'everything is paused', {
        field: 'queue',
        given: queue,
        todo: 'Resume everything first: `carillon queues resume --all`.',
      });
    }
    await this.workers.resume(queue);
    await this.scripts.set(queue, { paused: null, pausedWithAll: null }, false);
  }

  /** The queues that workers had been paused for before stay so when everything is resumed. @returns those paused with it */
  async pauseAll(queues: readonly string[], note: string): Promise<string[]> {
    await this.scripts.set(ALL_QUEUES, { paused: true, pauseNote: checkNote(note) || null }, false);
    for (const queue of queues) {
      if (await this.workers.isPaused(queue)) continue;
      await this.scripts.set(queue, { pausedWithAll: true }, false);
      await this.workers.pause(queue);
    }
    return [...(await this.scripts.all())].flatMap(([queue, { pausedWithAll }]) =>
      pausedWithAll ? [queue] : [],
    );
  }

  /** @returns the queues whose workers go on */
  async resumeAll(): Promise<string[]> {
    const resumed: string[] = [];
    for (const [queue, { paused, pausedWithAll }] of await this.scripts.all()) {
      if (!pausedWithAll) continue;
      if (!paused) {
        await this.workers.resume(queue);
        resumed.push(queue);
      }
      await this.scripts.set(queue, { pausedWithAll: null }, false);
    }
    await this.scripts.set(ALL_QUEUES, {}, true);
    return resumed;
  }
}
