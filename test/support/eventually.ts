import { setTimeout as sleep } from 'node:timers/promises';

export interface EventuallyOptions {
  /** How long to try, in milliseconds. Defaults to 10,000. */
  timeout?: number;
  /** Pause between tries, in milliseconds. Defaults to 20. */
  every?: number;
}

/**
 * Calls `fn` until it neither throws nor returns `false`, and resolves to what it returned. `undefined` counts as
 * success, so that a body of `expect` calls will do. Rejects with the last failure at the time-out.
 */
export async function eventually<T>(
  fn: () => T | Promise<T>,
  { timeout = 10_000, every = 20 }: EventuallyOptions = {},
): Promise<Exclude<T, false>> {
  const deadline = performance.now() + timeout;
  for (;;) {
    let failure: unknown;
    try {
      const value = await fn();
      if (value !== false) return value as Exclude<T, false>;
      failure = new Error('condition is still false');
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= deadline) {
      throw new Error(`not true within ${timeout} ms: ${message(failure)}`, { cause: failure });
    }
    await sleep(every);
  }
}

function message(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
