import type { BenchRedis } from './bench-redis.js';
import type { BenchResult, OwnResult } from './figures.js';

/** One measurement of Carillon, beside BullMQ's own delayed jobs where they have the like. */
export interface Bench {
  /** How many jobs, and rounds, unless it is said otherwise. */
  readonly jobs: number;
  readonly rounds: number;
  /** What it measures, in a few words. */
  readonly says: string;
  run(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult | OwnResult>;
}

/** What `carillon bench` offers; each is loaded when it runs. */
export const BENCHES: Readonly<Record<string, Bench>> = {
  submit: {
    jobs: 100_000,
    rounds: 5,
    says: 'bulk jobs a second',
    run: async (...args) => (await import('./submit.js')).submit(...args),
  },
  memory: {
    jobs: 100_000,
    rounds: 3,
    says: 'bytes of Redis a pending job',
    run: async (...args) => (await import('./memory.js')).memory(...args),
  },
  herd: {
    jobs: 100_000,
    rounds: 5,
    says: 'from due to the last handler, one stock worker',
    run: async (...args) => (await import('./herd.js')).herd(...args),
  },
  steady: {
    jobs: 1000,
    rounds: 3,
    says: 'lag at 50 jobs a second',
    run: async (...args) => (await import('./steady.js')).steady(...args),
  },
  gate: {
    jobs: 400_000,
    rounds: 1,
    says: 'a herd through a gate: rate, urgent job, another tenant, memory of the scheduler',
    run: async (redis, jobs) => (await import('./gate.js')).gate(redis, jobs),
  },
  failover: {
    jobs: 200,
    rounds: 3,
    says: 'three schedulers on etcd: take-over, hand-over, joining, scaling; jobs a second',
    run: async (...args) => (await import('./failover.js')).failover(...args),
  },
};
