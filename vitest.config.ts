import { defineConfig } from 'vitest/config';

type Folder = 'unit' | 'property' | 'contract' | 'integration' | 'cluster' | 'fault' | 'alone' | 'package';

const SHARED_REDIS = 'test/support/shared-redis.ts';
const COMPILED = 'test/support/compiled-sources.ts';

/**
 * One project a folder of test/. Groups run one after the other: what kills processes or watches the clock
 * never shares the machine with the rest. What talks to servers mostly waits, for them or for leases and locks to end: three
 * at a time on two cores, two clusters at most. What times Redis itself is in `alone`.
 */
function project(folder: Folder, groupOrder: number, maxWorkers: number, ...globalSetup: string[]) {
  return {
    test: {
      name: folder,
      include: [`test/${folder}/**/*.test.ts`],
      setupFiles: ['test/support/setup.ts'],
      globalSetup,
      environment: 'node' as const,
      pool: 'forks' as const,
      testTimeout: 30_000,
      hookTimeout: 30_000,
      maxWorkers,
      sequence: { groupOrder },
      env: { CARILLON_LOG_LEVEL: process.env.CARILLON_LOG_LEVEL ?? 'silent', TZ: 'UTC' },
    },
  };
}

export default defineConfig({
  test: {
    passWithNoTests: true,
    maxConcurrency: 2,
    projects: [
      project('unit', 0, 2),
      project('property', 0, 2),
      project('contract', 1, 3, SHARED_REDIS, COMPILED),
      project('integration', 1, 3, SHARED_REDIS, COMPILED),
      project('cluster', 2, 2, SHARED_REDIS, COMPILED),
      project('fault', 3, 3, SHARED_REDIS, COMPILED),
      project('alone', 4, 1, SHARED_REDIS, COMPILED),
      project('package', 5, 1, 'test/support/packed-consumer.ts'),
    ],
  },
});
