import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { BenchResult } from '../../src/bench/figures.js';
import { spawnNode } from '../support/node-process.js';

const MAIN = fileURLToPath(new URL('../bench/main.ts', import.meta.url));

/** The object that a small bench prints as its last line. */
async function run(name: string, jobs: number): Promise<BenchResult> {
  const bench = spawnNode(MAIN, [name, '--jobs', String(jobs), '--rounds', '1', '--json']);
  const { code } = await bench.exited;
  expect(code, bench.stderr).toBe(0);
  const result = JSON.parse(bench.lines.at(-1) ?? '') as BenchResult;
  expect(result).toMatchObject({ name, jobs, rounds: 1 });
  for (const figure of [...Object.values(result.carillon), ...Object.values(result.bullmq)]) {
    expect(figure, JSON.stringify(result)).toBeGreaterThan(0);
  }
  return result;
}

function expectRatio({ carillon, bullmq, ratio }: BenchResult, figure: string): void {
  expect((ratio ?? NaN) / ((carillon[figure] ?? NaN) / (bullmq[figure] ?? NaN))).toBeCloseTo(1, 2);
}

/**
 * Small runs, so that the benches cannot rot. What they measure here depends on what else the machine does, and most of
 * their time is waiting: several run at once.
 */
describe.concurrent('each bench runs small and prints its figures', { timeout: 120_000 }, () => {
  test('submit', async () => {
    expectRatio(await run('submit', 2000), 'jobsPerSecond');
  });

  test('memory', async () => {
    const result = await run('memory', 2000);
    expectRatio(result, 'bytesPerJob');
    // Bytes do not depend on what else the machine does.
    expect(result.ratio).toBeLessThan(0.5);
  });

  test('herd', async () => {
    const result = await run('herd', 2000);
    expectRatio(result, 'lastHandlerMs');
    expect(Object.keys(result.carillon)).toEqual(['lastHandlerMs', 'dispatchPerSecond']);
  });

  test('steady', async () => {
    const result = await run('steady', 150);
    expectRatio(result, 'lagP99Ms');
    expect(Object.keys(result.carillon)).toEqual(['lagP50Ms', 'lagP99Ms', 'lagMaxMs']);
  });

  test('gate', async () => {
    const bench = spawnNode(MAIN, ['gate', '--jobs', '6000', '--json']);
    const { code } = await bench.exited;
    expect(code, bench.stderr).toBe(0);
    const result = JSON.parse(bench.lines.at(-1) ?? '');
    expect(result).toMatchObject({ name: 'gate', jobs: 6000, lost: 0, doubled: 0, aboveRateAndBurst: 0 });
    for (const figure of [result.urgentMs, result.otherTenantMs]) expect(figure).toBeGreaterThan(0);
    expect(result.rateError).toBeGreaterThanOrEqual(0);
  });

  test('failover', async () => {
    const bench = spawnNode(MAIN, ['failover', '--jobs', '100', '--rounds', '1', '--json']);
    const { code } = await bench.exited;
    expect(code, bench.stderr).toBe(0);
    const result = JSON.parse(bench.lines.at(-1) ?? '');
    expect(result).toMatchObject({ name: 'failover', jobs: 100, rounds: 1, ttlMs: 10_000 });
    expect(result).toMatchObject({ lost: 0, doubled: 0, early: 0 });
    for (const figure of [
      result.kill.takeoverMs,
      result.drain.handoverMs,
      result.join.settledMs,
      result.scale.upMs,
      result.scale.downMs,
    ]) {
      expect(figure, JSON.stringify(result)).toBeGreaterThan(0);
    }
  });

  test('pop', async () => {
    expect(Object.keys((await run('pop', 20_000)).carillon)).toEqual([
      'microsecondsAt10k',
      'microsecondsAtAll',
      'growth',
    ]);
  });

  test('idle', async () => {
    const { carillon } = await run('idle', 2000);
    expect(carillon.commandsSentPerSecond).toBeLessThan(20);
    expect(carillon.commandsByInfoPerSecond).toBeLessThan(20);
  });

  test('definitions', async () => {
    expect(Object.keys((await run('definitions', 500)).carillon)).toEqual([
      'bytesPerDefinition',
      'upsertsPerSecond',
      'dispatchMs',
      'plannedAfterMs',
      'oneTimeBesideMs',
      'timesOneTimeBeside',
      'oneTimeMs',
      'timesOneTime',
    ]);
  });

  test('schedules', async () => {
    const result = await run('schedules', 20);
    expectRatio(result, 'lagP99Ms');
    expect(result.carillon.firedPercent).toBe(100);
  });

  test('fire-times', async () => {
    expect((await run('fire-times', 2000)).ratio).toBeGreaterThan(1);
  });
});

test('a bench that does not exist, and a count that is none, are refused', async () => {
  for (const [args, message] of [
    [['sumbit'], "'sumbit' is no bench (INVALID_OPTION). Give submit, memory, herd, steady"],
    [['submit', '--jobs', 'many'], 'jobs must be a whole number'],
    [['submit', '--rounds', '0'], 'rounds must be a whole number'],
    [['submit', '--fast'], "unknown option '--fast'"],
  ] as const) {
    const bench = spawnNode(MAIN, [...args]);
    expect(await bench.exited).toMatchObject({ code: 2 });
    expect(bench.stderr).toContain(message);
    expect(bench.stderr.trim()).not.toContain('\n');
  }
});
