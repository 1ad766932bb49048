import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const CHILD = fileURLToPath(new URL('./host-zone.fixture.ts', import.meta.url));
const run = promisify(execFile);

test.each([
  ['Asia/Dubai', 4],
  ['America/New_York', 19],
  ['UTC', 0],
])('B62: a host in %s gives the same answers', async (hostZone, hour) => {
  const env = { ...process.env, TZ: hostZone };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', CHILD], { env });
  const answer = JSON.parse(stdout) as { walked: number };
  expect(answer).toMatchObject({ hostZone, hour, asked: 1787 + 3 * 82 + 47, wrong: [] });
  expect(answer.walked).toBeGreaterThan(1_000);
});
