import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

interface Report {
  testResults: {
    message: string;
    assertionResults: { title: string; status: string; failureMessages: string[] }[];
  }[];
}

const CONFIG = fileURLToPath(new URL('../../fixtures/leaks/vitest.config.ts', import.meta.url));

test('a leaked service fails its test, a leaked connection its file, and servers are stopped', () => {
  const dir = mkdtempSync(join(tmpdir(), 'carillon-leaks-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const pidFile = join(dir, 'pid');
  const run = spawnSync('npx', ['vitest', 'run', '--config', CONFIG, '--reporter=json'], {
    encoding: 'utf8',
    env: { ...process.env, PID_FILE: pidFile },
  });

  const report = JSON.parse(run.stdout.slice(run.stdout.indexOf('{"'))) as Report;
  const [file] = report.testResults;
  const results = file?.assertionResults.map(({ title, status, failureMessages }) => ({
    title,
    status,
    why: failureMessages[0]?.split('\n')[0],
  }));
  expect(results).toEqual([
    { title: 'passes: stopped in afterEach', status: 'passed', why: undefined },
    { title: 'passes: stopped in onTestFinished', status: 'passed', why: undefined },
    { title: 'fails: a service left running', status: 'failed', why: 'Error: left running: Idle' },
    {
      title: 'fails: with its server running',
      status: 'failed',
      why: expect.stringContaining('to be false'),
    },
  ]);
  expect(file?.message).toMatch(/connections left open to 127\.0\.0\.1:\d+/);
  expect(run.status).not.toBe(0);
  expect(() => process.kill(Number(readFileSync(pidFile, 'utf8')), 0)).toThrow('ESRCH');
});
