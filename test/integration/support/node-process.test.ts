import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { onCleanup } from '../../support/cleanup.js';
import { eventually } from '../../support/eventually.js';
import { spawnNode } from '../../support/node-process.js';

const SUPPORT = new URL('../../support/', import.meta.url);
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'carillon-scripts-'));
  onCleanup(dir, () => rmSync(dir, { recursive: true, force: true }));
});

async function script(text: string): Promise<string> {
  const file = join(dir, `script-${Math.random().toString(36).slice(2)}.mts`);
  await writeFile(file, text);
  return file;
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('runs TypeScript with arguments and environment, and hears its lines', async () => {
  const child = spawnNode(
    await script(`
      const words: string[] = process.argv.slice(2);
      console.log('pid ' + process.pid, process.env.WHO, words.join('+'));
      process.stdin.on('data', (text: Buffer) => console.log('heard ' + text));
    `),
    ['a', 'b'],
    { WHO: 'me' },
  );
  expect(await child.waitForLine(/^pid/)).toBe(`pid ${child.pid} me a+b`);
  child.writeLine('hello');
  await child.waitForLine('heard hello');
  expect(await child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
});

test('a process that ends early shows its output', async () => {
  const child = spawnNode(await script(`console.log('first'); throw new Error('broken on purpose');`));
  await expect(child.waitForLine('ready')).rejects.toThrow(
    /ended without a line[\s\S]*first[\s\S]*broken on purpose/,
  );
  expect(await child.exited).toEqual({ code: 1, signal: null });
});

test('a line that does not come is missed after the time-out', async () => {
  const child = spawnNode(await script(`console.log('up'); setInterval(() => undefined, 1000);`));
  await child.waitForLine('up');
  await expect(child.waitForLine('ready', 50)).rejects.toThrow('no line like ready within 50 ms');
});

test('a stopped process is silent until it continues, and a killed one is gone', async () => {
  const child = spawnNode(await script(`setInterval(() => console.log('tick ' + Date.now()), 5);`));
  await child.waitForLine('tick');
  child.sigstop();
  await eventually(() => stateOf(child.pid) === 'T');
  child.sigcont();
  const seen = child.lines.length;
  await eventually(() => child.lines.length > seen + 3);
  expect(await child.kill9()).toEqual({ code: null, signal: 'SIGKILL' });
  expect(alive(child.pid)).toBe(false);
});

test('SIGTERM ignored: killed after the grace', async () => {
  const child = spawnNode(
    await script(
      `process.on('SIGTERM', () => undefined); console.log('up'); setInterval(() => undefined, 1000);`,
    ),
  );
  await child.waitForLine('up');
  expect(await child.stop(50)).toEqual({ code: null, signal: 'SIGKILL' });
});

test('what a killed parent had started dies with it', async () => {
  const parent = spawnNode(
    await script(`
      import { startRedis } from ${JSON.stringify(new URL('redis-server.js', SUPPORT).href)};
      import { spawnNode } from ${JSON.stringify(new URL('node-process.js', SUPPORT).href)};
      const redis = await startRedis();
      redis.sigstop();
      const child = spawnNode(${JSON.stringify(await script(`setInterval(() => undefined, 1000);`))});
      console.log(JSON.stringify({ redis: redis.pid, dir: redis.dir, child: child.pid }));
    `),
  );
  const started = JSON.parse(await parent.waitForLine('{')) as { redis: number; child: number; dir: string };
  expect([alive(started.redis), alive(started.child)]).toEqual([true, true]);
  await parent.kill9();
  await eventually(() => !alive(started.redis) && !alive(started.child));
  await eventually(() => !existsSync(started.dir));
});

/** The state letter of a process: `T` is stopped. Small Linux images have no ps. */
function stateOf(pid: number): string | undefined {
  const stat = `/proc/${pid}/stat`;
  if (existsSync(stat)) return /\) (\w)/.exec(readFileSync(stat, 'utf8'))?.[1];
  return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    .trim()
    .charAt(0);
}
