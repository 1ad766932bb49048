import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';

/** URL of the Redis that all tests of a run share. Never FLUSHDB it; start your own with `startRedis()` instead. */
export function sharedRedisUrl(): string {
  return inject('sharedRedisUrl');
}

/**
 * A name for namespaces, prefixes and queues that no other test and no earlier run uses. It holds a readable piece of
 * the test's name, so that keys left by a failure can be traced.
 *
 * @param test the test's context or task: `({ task }) => namespaceFor(task)`; a string will do.
 */
export function namespaceFor(test: { name: string } | string): string {
  const name = typeof test === 'string' ? test : test.name;
  const readable = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 24)
    .replace(/^-+|-+$/g, '');
  return `t-${readable}-${randomBytes(5).toString('hex')}`;
}
