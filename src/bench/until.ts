import { setTimeout as pause } from 'node:timers/promises';
import { CarillonError } from '../domain/errors.js';

/**
 * Asks until the answer is yes.
 * @param what that which is waited for, for the error.
 * @param times in ms: how long at most, and how long between two questions.
 * @throws CarillonError TIMEOUT
 */
export async function until(
  what: string,
  asked: () => Promise<boolean>,
  { timeout, every }: { timeout: number; every: number },
): Promise<void> {
  const deadline = performance.now() + timeout;
  while (!(await asked())) {
    if (performance.now() > deadline) throw tooSlow(`${what} took longer than ${timeout / 1000} s`);
    await pause(every);
  }
}

/** A machine on which nothing can be measured. */
export function tooSlow(problem: string): CarillonError {
  return new CarillonError('TIMEOUT', problem, {
    todo: 'Run it again when the machine has less to do, or with fewer --jobs.',
  });
}
