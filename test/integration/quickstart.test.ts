import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Tally } from '../../examples/quickstart/tally.js';
import { eventually } from '../support/eventually.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';

const SCRIPT = fileURLToPath(new URL('../../examples/quickstart/main.ts', import.meta.url));
const CLI = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const START_UP = 60_000;

// Most of their time is waiting: two at once.

/** The processes and the folder that a quick start says it has made. */
async function startedBy(quickstart: NodeProcess) {
  const redis = /data in (\S+) .*pid (\d+)/.exec(
    await quickstart.waitForLine('append-only file on', START_UP),
  );
  const others = /scheduler: pid (\d+); worker: pid (\d+)/.exec(
    await quickstart.waitForLine('scheduler: pid', START_UP),
  );
  return {
    folder: redis?.[1] ?? '',
    redis: Number(redis?.[2]),
    scheduler: Number(others?.[1]),
    worker: Number(others?.[2]),
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function expectAllGone({ folder, redis, scheduler, worker }: Awaited<ReturnType<typeof startedBy>>) {
  await eventually(() => ![redis, scheduler, worker].some(isAlive) && !existsSync(folder), {
    timeout: 20_000,
  });
}

test.concurrent('a small run shows the crontab files, runs everything, and ends with exit code 0', async () => {
  const quickstart = spawnNode(SCRIPT, ['--jobs', '300', '--seconds', '2']);
  const started = await startedBy(quickstart);
  const { code } = await quickstart.exited;
  const output = quickstart.lines.join('\n');
  expect(code, `${output}\n${quickstart.stderr}`).toBe(0);

  // Each file, a zone's own time beside UTC, and the reason of a refusal.
  for (const file of ['01-user-basic.crontab', '10-nightly-staggered.crontab'])
    expect(output).toContain(file);
  expect(output).toMatch(/8 13 \* \* \* +│ Asia\/Yerevan +│ [\d-]+ 13:08:00\+04:00 │ [\d-]+ 09:08:00 │/);
  expect(output).toMatch(/60 \* \* \* \* minute out of range +│ UTC +│ refused: .*minute/);
  expect(output).toContain('refused: unknown zone Asia/Shangai');

  expect(output).toContain('carillon doctor finds nothing wrong');

  const counts = (name: string) =>
    new RegExp(`│ ${name} +│${' +([\\d,]+) │'.repeat(5)}`).exec(output)?.slice(1).map(Number);
  expect(counts('spread over 2 s')).toEqual([300, 300, 0, 0, 0]);
  expect(counts('herd at one instant')).toEqual([300, 300, 0, 0, 0]);
  const ticks = counts('ticks of schedules') ?? [];
  expect(ticks[0]).toBeGreaterThan(10);
  expect(ticks.slice(1)).toEqual([ticks[0], 0, 0, 0]);
  await expectAllGone(started);
}, 120_000);

test.concurrent('--keep leaves it running and says how to look; Ctrl-C stops everything', async () => {
  const quickstart = spawnNode(SCRIPT, ['--keep', '--jobs', '10', '--seconds', '1']);
  const started = await startedBy(quickstart);
  await quickstart.waitForLine('To stop all of it', START_UP);
  expect([started.redis, started.scheduler, started.worker].every(isAlive)).toBe(true);
  const commands = quickstart.lines.flatMap((line) => /node dist\/cli\/main\.js (.+)/.exec(line)?.[1] ?? []);
  expect(commands.length).toBeGreaterThan(2);
  for (const command of commands) {
    const looking = spawnNode(CLI, command.split(' '));
    expect(await looking.exited, `${command}\n${looking.stderr}`).toMatchObject({ code: 0 });
  }
  process.kill(quickstart.pid, 'SIGINT');
  expect(await quickstart.exited).toMatchObject({ code: 130 });
  await expectAllGone(started);
}, 120_000);

test.concurrent('nothing survives a quick start that is killed', async () => {
  const quickstart = spawnNode(SCRIPT, []);
  const started = await startedBy(quickstart);
  await quickstart.kill9();
  await expectAllGone(started);
}, 120_000);

test.concurrent('a scheduler that dies fails the run', async () => {
  const quickstart = spawnNode(SCRIPT, ['--jobs', '300', '--seconds', '2']);
  const started = await startedBy(quickstart);
  process.kill(started.scheduler, 'SIGKILL');
  expect(await quickstart.exited).toMatchObject({ code: 1 });
  expect(quickstart.stderr).toContain('the scheduler ended by itself (SIGKILL)');
  await expectAllGone(started);
}, 120_000);

test.concurrent('options that mean nothing are refused', async () => {
  for (const [args, message] of [
    [['--kep'], "Unknown option '--kep'"],
    [['--jobs', '0'], '--jobs must be a whole number above 0'],
  ] as const) {
    const quickstart = spawnNode(SCRIPT, [...args]);
    expect(await quickstart.exited).toMatchObject({ code: 2 });
    expect(quickstart.stderr).toContain(message);
  }
}, 120_000);

test('the count tells lost, doubled, early and unexpected runs apart', () => {
  const tally = new Tally();
  for (const id of ['good', 'lost', 'twice', 'early']) tally.expect('jobs', 'mail', id, 1000);
  tally.handled('mail', 'good', 1003);
  tally.handled('mail', 'twice', 1001);
  tally.handled('mail', 'twice', 1002);
  tally.handled('mail', 'early', 999.5);
  tally.handled('mail', 'stranger', 1000);
  // The same id in another queue is another job.
  tally.handled('other', 'lost', 1000);
  expect(tally.group('jobs')).toMatchObject({ expected: 4, run: 3, lost: 1, doubled: 1, early: 1 });
  expect(tally.unexpected).toEqual(['mail stranger', 'other lost']);
  expect(tally.good).toBe(false);
});

test('a run that is quicker than the answer to its submit counts all the same', () => {
  const tally = new Tally();
  tally.handled('mail', 'quick', 1001);
  tally.handled('mail', 'quick', 1002);
  tally.expect('jobs', 'mail', 'quick', 1000);
  expect(tally.group('jobs')).toMatchObject({
    expected: 1,
    run: 1,
    lost: 0,
    doubled: 1,
    early: 0,
    lags: [1],
  });
  expect(tally.unexpected).toEqual([]);
});
