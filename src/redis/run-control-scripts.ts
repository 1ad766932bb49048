import { bucketOf } from '../domain/buckets.js';
import { isCarillonError } from '../domain/errors.js';
import { identityOf, jobIdOfRun } from '../domain/ids.js';
import type { RecordChange } from './job-scripts.js';
import { moveOf, updateArguments } from './job-scripts.js';
import { asText } from './replies.js';
import { requestHash } from './request-id.js';
import type { ScriptArgument } from './script-runner.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/**
 * What a change of a run on BullMQ's side did: it was done, the worker that has the run was asked, or the run is in our
 * tier, where it must be changed instead.
 */
export type RunControl = 'done' | 'asked' | 'pending';

const ANSWERS: Readonly<Record<string, RunControl>> = { OK: 'done', ASKED: 'asked', PENDING: 'pending' };

/** Changes to runs that BullMQ has, each one atomic script. Each carries a request id. */
export class RunControlScripts {
  constructor(private readonly shard: Shard) {}

  /** @throws CarillonError NOT_FOUND, CONFLICT when it has ended, UNSUPPORTED when a plain worker has it, QUEUE_BROKEN */
  cancel(queue: string, runId: string, reason: string, requestId: string): Promise<RunControl> {
    return this.#change('cancel-run', queue, runId, requestHash('cancel', requestId), [reason], 'allow-oom');
  }

  /** @throws CarillonError as `cancel` */
  pause(queue: string, runId: string, note: string, requestId: string): Promise<RunControl> {
    return this.#change('pause-run', queue, runId, requestHash('pause', requestId), [note]);
  }

  /** Withdraws a pause that is asked. @throws CarillonError NOT_FOUND, CONFLICT when none is or it has ended, QUEUE_BROKEN */
  resume(queue: string, runId: string, requestId: string): Promise<RunControl> {
    return this.#change('resume-run', queue, runId, requestHash('resume', requestId), [], 'allow-oom');
  }

  /** @throws CarillonError NOT_FOUND, CONFLICT when a worker has it or it has ended, QUEUE_BROKEN */
  update(queue: string, runId: string, change: RecordChange, requestId: string): Promise<RunControl> {
    return this.#change(
      'update-run',
      queue,
      runId,
      requestHash('update', requestId),
      updateArguments(change),
    );
  }

  /** To `time`: ms since 1970, or from now when `relative`. @throws CarillonError as `update`, INVALID_OPTION */
  reschedule(
    queue: string,
    runId: string,
    time: number,
    relative: boolean,
    requestId: string,
  ): Promise<RunControl> {
    return this.#change('reschedule-run', queue, runId, requestHash(moveOf(relative), requestId), [
      time,
      relative ? 1 : 0,
    ]);
  }

  /**
   * Takes a run back that waits for its turn in its schedule's record.
   * @param verb anything but `cancel` is refused.
   * @returns false when no run of this id waits there.
   * @throws CarillonError UNSUPPORTED, CONFLICT
   */
  async inTurn(
    queue: string,
    runId: string,
    verb: 'cancel' | 'resume' | 'change',
    reason: string,
    requestId: string,
  ): Promise<boolean> {
    const schedule = jobIdOfRun(runId);
    if (schedule === runId) return false;
    try {
      await this.#change(
        'change-waiting-run',
        queue,
        schedule,
        // The record of the schedule remembers it, for all of its runs.
        requestHash(verb === 'change' ? 'update' : verb, `${requestId}@${runId}`),
        [runId, verb, reason],
        'allow-oom',
      );
      return true;
    } catch (error) {
      if (isCarillonError(error, 'NOT_FOUND')) return false;
      throw error;
    }
  }

  async #change(
    script: string,
    queue: string,
    runId: string,
    request: Buffer,
    args: readonly ScriptArgument[],
    flag: 'deny-oom' | 'allow-oom' = 'deny-oom',
  ): Promise<RunControl> {
    const identity = identityOf(queue, runId);
    const { status, rest } = await this.shard.run(script, flag, [
      this.shard.base,
      bucketOf(identity),
      identity,
      request,
      ...args,
    ]);
    const answer = Object.hasOwn(ANSWERS, status) ? ANSWERS[status] : undefined;
    if (answer !== undefined) return answer;
    const detail = rest[0] === undefined ? undefined : asText(rest[0]);
    if (status === 'FINISHED' && detail === 'failed') throw statusError('DEAD', undefined, 'jobId');
    throw statusError(status, detail, 'jobId');
  }
}
