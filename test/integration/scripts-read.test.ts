import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { splitIdentity } from '../../src/domain/ids.js';
import { aJob, aSchedule, jobs } from '../support/builders.js';
import { NOW, Spine } from '../support/spine.js';
import { changesOf } from '../support/spine-state.js';

/** Everything that pages of all buckets list. */
async function listAll(spine: Spine, filter: Parameters<Spine['jobs']['list']>[2] = {}): Promise<string[]> {
  const found: string[] = [];
  for (let bucket = 0; bucket < 256; bucket++) {
    let cursor = '0';
    do {
      const page = await spine.jobs.list(bucket, cursor, filter);
      found.push(...page.found.map(({ identity }) => identity));
      cursor = page.cursor;
    } while (cursor !== '0');
  }
  return [...new Set(found)].sort();
}

describe('get-job', () => {
  test('OK: pending, ended, quarantined, unknown; nothing is written', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [
      aJob('pending'),
      aJob('ran', { time: NOW }),
      aJob('bad', { time: NOW + 1, opts: '{' }),
    ]);
    await spine.setClock(NOW + 1);
    await spine.drain(await spine.lead());
    const { changes } = await changesOf(spine, async () => {
      expect(await spine.jobs.get('q', 'pending')).toMatchObject({
        now: NOW + 1,
        record: { kind: 'job', at: NOW + 3_600_000 },
        quarantined: undefined,
        ended: undefined,
      });
      expect(await spine.jobs.get('q', 'ran')).toMatchObject({
        record: undefined,
        ended: { at: NOW, how: 1 },
      });
      expect(await spine.jobs.get('q', 'bad')).toMatchObject({
        record: undefined,
        quarantined: { since: NOW + 1, reason: expect.stringContaining('not a JSON object') },
      });
      expect(await spine.jobs.get('q', 'none')).toEqual({
        now: NOW + 1,
        record: undefined,
        quarantined: undefined,
        ended: undefined,
        last: 0,
      });
    });
    expect(changes).toEqual({});
  });
});

describe('list-jobs', () => {
  test('OK: every record once, by queue, kind and state', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit(
      'q',
      jobs(300, 'j', () => ({})),
    );
    await spine.submit('other', [aJob('o')]);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r');
    await spine.jobs.pause('q', 'j7', '', 'r');
    expect(await listAll(spine)).toHaveLength(302);
    expect(await listAll(spine, { queue: 'other' })).toEqual(['other:o']);
    expect(await listAll(spine, { kind: 'schedule' })).toEqual(['q:s']);
    expect(await listAll(spine, { queue: 'q', kind: 'job', states: ['paused'] })).toEqual(['q:j7']);
    expect(await listAll(spine, { states: ['paused', 'scheduled'] })).toHaveLength(302);
  });

  test('OK: a corrupt record is listed, not stumbled over', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.client.hset(spine.keys.jobs(9), 'q:empty', '', 'q:x', 'x');
    expect(await listAll(spine)).toEqual(['q:empty', 'q:x']);
  });
});

describe('list-due', () => {
  test('OK: pages in order of fire time, either way, filtered', async ({ task }) => {
    const spine = await Spine.virtual(task);
    // Many ids of one bucket, so that it has pages.
    const ids = Array.from({ length: 20_000 }, (_, i) => `j${i}`)
      .filter((id) => bucketOf(`q:${id}`) === 5)
      .slice(0, 50);
    await spine.submit(
      'q',
      ids.map((jobId, i) => aJob(jobId, { time: NOW + 1000 + i })),
    );
    const pages: string[][] = [];
    let offset = 0;
    do {
      const { timers, next } = await spine.jobs.listDue(5, offset, 20);
      pages.push(timers.map(({ identity }) => splitIdentity(identity).jobId));
      offset = next;
    } while (offset !== -1);
    expect(pages.map((page) => page.length)).toEqual([20, 20, 10]);
    expect(pages.flat()).toEqual(ids);
    const { timers } = await spine.jobs.listDue(5, 0, 3, { latestFirst: true, queue: 'q', jobsOnly: true });
    expect(timers).toEqual([49, 48, 47].map((i) => ({ identity: `q:${ids[i]}`, fireAt: NOW + 1000 + i })));
    expect((await spine.jobs.listDue(5, 0, 100, { queue: 'other' })).timers).toEqual([]);
  });

  test('OK: jobsOnly leaves schedules out', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r');
    const bucket = bucketOf('q:s');
    expect((await spine.jobs.listDue(bucket, 0, 10)).timers).toHaveLength(1);
    expect((await spine.jobs.listDue(bucket, 0, 10, { jobsOnly: true })).timers).toEqual([]);
  });
});

describe('drop-dedup', () => {
  test('OK: only the one that stands, only of the job that is named', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { opts: '{"de":{"id":"d","ttl":1000}}', dedup: true })]);
    expect(await spine.jobs.dropDedup('q', 'd', 'other')).toBe(false);
    expect(await spine.jobs.getDedup('q', 'd')).toBe('a');
    const { changes } = await changesOf(spine, () => spine.jobs.dropDedup('q', 'd', 'a'));
    expect(changes).toEqual({ 'dedup:q d': null });
    expect(await spine.jobs.dropDedup('q', 'd')).toBe(false);
  });
});
