import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';

/** The example, or a copy of it beside another NestJS. */
const EXAMPLE =
  process.env.CARILLON_TEST_NESTJS ?? fileURLToPath(new URL('../../examples/nestjs', import.meta.url));

test('a NestJS application takes our Queue in one line: the example runs', { timeout: 60_000 }, async ({
  task,
}) => {
  const app = spawnNode(join(EXAMPLE, 'app.ts'), [], {
    REDIS_URL: sharedRedisUrl(),
    PREFIX: namespaceFor(task),
    TSX_TSCONFIG_PATH: join(EXAMPLE, 'tsconfig.json'),
  });
  await app.waitForLine(/^created, then existing; due at \d{4}-/, 50_000);
  await app.waitForLine('reminded ann');
  expect(app.stderr).toBe('');
  expect(await app.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  expect(app.lines.filter((line) => line === 'reminded ann')).toHaveLength(1);
});
