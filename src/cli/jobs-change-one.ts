import type { Command } from 'commander';
import type { ControlResult } from '../client/job-control.js';
import type { JobOptions } from '../client/job-options.js';
import type { Queue } from '../client/queue.js';
import { CarillonError } from '../domain/errors.js';
import { durationArgument, instantArgument } from './arguments.js';
import { withKnownQueue } from './connect.js';
import { refuseArgument } from './failure.js';
import { describeJob } from './job-description.js';
import { plain, printJson, printLine } from './output.js';
import { settingsOf } from './settings.js';

/** The time of `--delay` or `--at`, as options of a job. */
export function timeOf({ delay, at }: { delay?: string; at?: string }): Pick<JobOptions, 'delay' | 'at'> {
  if (delay !== undefined && at !== undefined)
    refuseArgument('at', at, 'and delay exclude each other', 'Give one.');
  if (delay !== undefined) return { delay: durationArgument(delay, 'delay') };
  return at === undefined ? {} : { at: instantArgument(at, 'at') };
}

/** How a change is told: the verb, and what it made of a job. A worker is only asked: its run may still end well. */
export interface ChangeWords {
  verb: string;
  done: string;
}

/** One change of one job; what it is afterwards is printed. */
export async function changeJob(
  command: Command,
  queue: string,
  id: string,
  { verb, done }: ChangeWords,
  make: (queue: Queue) => Promise<ControlResult | undefined>,
): Promise<void> {
  const settings = settingsOf(command);
  const [result, after] = await withKnownQueue(settings, queue, async (q) => {
    return [await make(q), await describeJob(q, id)] as const;
  });
  const asked = result?.where === 'worker';
  if (settings.json) {
    const where = result?.where;
    return printJson({
      queue,
      id,
      done: asked ? 'asked' : done,
      ...(where && { where }),
      job: after ?? null,
    });
  }
  if (asked) return printLine(`asked the worker to ${verb} ${plain(id)} in ${queue}; it may end first`);
  const due = after?.where === 'timers' && after.state === 'scheduled' ? `, due ${after.due}` : '';
  printLine(`${done} ${plain(id)} in ${queue}${due}`);
}

/** The error for a job that nobody knows. */
export function notFound(queue: string, id: string): CarillonError {
  return new CarillonError('NOT_FOUND', `the queue ${queue} has no job ${JSON.stringify(id)}`, {
    field: 'id',
    given: id,
    todo: 'Check queue and id; `carillon jobs list` shows what waits.',
  });
}
