import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { BenchResult } from '../../src/bench/figures.js';
import { eventually } from '../support/eventually.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { CLI } from './cli-process.js';

function bench(args: readonly string[], env: Record<string, string | undefined> = {}): NodeProcess {
  return spawnNode(CLI, ['bench', ...args], { CARILLON_REDIS_URL: undefined, REDIS_URL: undefined, ...env });
}

/** A long bench, and the folder that its server made. */
async function longBench(): Promise<[NodeProcess, string]> {
  // Other benches may run beside this one.
  const parent = mkdtempSync(join(tmpdir(), 'carillon-benches-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const child = bench(['submit', '--jobs', '50000000', '--rounds', '1'], { TMPDIR: parent });
  const isServer = (name: string) => existsSync(join(parent, name, 'appendonlydir'));
  const folder = await eventually(() => readdirSync(parent).find(isServer) ?? false, { every: 5 });
  return [child, join(parent, folder)];
}

describe('carillon bench, as it is packed', { timeout: 60_000 }, () => {
  test('measures both sides with processes of its own, and prints one object last', async () => {
    const child = bench(['herd', '--jobs', '500', '--rounds', '1', '--json']);
    const { code } = await child.exited;
    expect(code, child.stderr).toBe(0);
    const result = JSON.parse(child.lines.at(-1) ?? '') as BenchResult;
    expect(result).toMatchObject({ name: 'herd', jobs: 500, rounds: 1 });
    expect(result.carillon.dispatchPerSecond).toBeGreaterThan(0);
    expect(result.bullmq.lastHandlerMs).toBeGreaterThan(0);
  });

  test('prints a table for people', async () => {
    const child = bench(['submit', '--jobs', '1000', '--rounds', '1']);
    expect(await child.exited).toMatchObject({ code: 0 });
    const text = child.lines.join('\n');
    expect(text).toContain('submit: bulk jobs a second');
    expect(text).toMatch(/jobsPerSecond .*\d/);
    expect(text).toMatch(/1000 jobs, medians of 1 rounds in turns; Redis \d/);
  });

  test('lists the benches of users, and no others', async () => {
    const child = bench(['--help']);
    expect(await child.exited).toMatchObject({ code: 0 });
    const listed = child.lines.flatMap(
      (line) => /^ {2}(\S+) +.*; \d+ jobs, \d+ rounds$/.exec(line)?.[1] ?? [],
    );
    expect(listed).toEqual(['submit', 'memory', 'herd', 'steady', 'gate', 'failover']);
  });

  test('says in one line that there is no redis-server', async () => {
    const child = bench(['submit'], { CARILLON_REDIS_SERVER: '/nowhere/redis-server' });
    expect(await child.exited).toMatchObject({ code: 1 });
    expect(child.stderr).toMatch(
      /^error: \/nowhere\/redis-server cannot be run: ENOENT \(UNSAFE_REDIS\)\. Install it[^\n]+\n$/,
    );
    expect(child.lines).toEqual([]);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'leaves nothing behind when it is ended by %s',
    async (signal) => {
      const [child, folder] = await longBench();
      process.kill(child.pid, signal);
      expect(await child.exited).toEqual(
        signal === 'SIGTERM' ? { code: 130, signal: null } : { code: null, signal },
      );
      await eventually(() => !existsSync(folder));
    },
  );
});
