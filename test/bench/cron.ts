import type { BenchRedis } from '../../src/bench/bench-redis.js';
import type { BenchResult } from '../../src/bench/figures.js';
import { manyDefinitions, sideBySide } from './fire-times.js';

/**
 * Fire times a second over real expressions in real zones, beside cron-parser, which BullMQ asks; and the CPU time that
 * `jobs` definitions over 200 expressions take to be compiled and asked once. Redis is not asked.
 */
export async function fireTimes(_redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const { carillon, cronParser, ratio } = sideBySide(rounds);
  return {
    name: 'fire-times',
    jobs,
    rounds,
    carillon: { ...carillon, definitionsCpuSeconds: manyDefinitions(jobs) },
    bullmq: cronParser,
    ratio,
  };
}
