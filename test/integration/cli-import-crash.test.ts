import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Admin } from '../../src/index.js';
import { bullmqPair } from '../support/bullmq-pair.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const HOUR = 3_600_000;
const JOBS = 6_000;

test('kill -9 in the middle: each job stands in one place, and a repeat finishes', {
  timeout: 90_000,
}, async ({ task }) => {
  const { stock, ours, prefix } = await bullmqPair(task);
  for (let from = 0; from < JOBS; from += 2000) {
    await stock.addBulk(
      Array.from({ length: 2000 }, (_, n) => ({
        name: 'x',
        data: from + n,
        opts: { delay: HOUR + from + n },
      })),
    );
  }
  await stock.upsertJobScheduler('nightly', { pattern: '30 2 * * *', tz: 'UTC' }, {});
  const start = () =>
    spawnNode(MAIN, ['import', 'bullmq', 'q', '--yes'], {
      CARILLON_REDIS_URL: sharedRedisUrl(),
      CARILLON_PREFIX: prefix,
    });
  const delayed = async () => (await stock.getDelayedCount()) - (await stock.getJobSchedulersCount());
  const pending = async () => (await ours.backend.pending.counts()).scheduled;

  const first = start();
  await eventually(async () => (await delayed()) < JOBS, { timeout: 60_000, every: 2 });
  await first.kill9();
  const [stayed, moved] = [await delayed(), await pending()];
  expect(stayed).toBeGreaterThan(0);
  expect(moved).toBeGreaterThan(0);
  expect(stayed + moved).toBe(JOBS);

  const second = start();
  expect(await second.exited).toMatchObject({ code: 0 });
  expect([await delayed(), await pending()]).toEqual([0, JOBS]);
  expect((await ours.schedules.get('nightly').describe())?.state).toBe('scheduled');
  expect(await stock.getJobSchedulersCount()).toBe(0);
  const seen = new Set<unknown>();
  await ours.backend.pending.walkJobs({}, async (page) => {
    for (const { jobId, record } of page) {
      expect(jobId).toMatch(/^bull-\d+$/);
      seen.add(JSON.parse(record.data));
    }
    return true;
  });
  expect(seen.size).toBe(JOBS);
  const admin = new Admin({ connection: sharedRedisUrl(), prefix });
  const { findings } = await admin.doctor().finally(() => admin.close());
  expect(findings.filter(({ check }) => check !== 'leader')).toEqual([]);
});
