import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { SubmitItem } from '../../src/redis/submit-batch.js';
import { aJob } from '../support/builders.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { changesOf } from '../support/spine-state.js';

const DUE = NOW + 1000;
const DEADLINE = NOW + 5000;
const BUCKET = bucketOf('q:a');

/** A job that is due in a second and has four more until its deadline. */
function urgent(jobId = 'a', over: Partial<SubmitItem> = {}): SubmitItem {
  const opts = JSON.stringify({ attempts: 0, deadline: DEADLINE });
  return aJob(jobId, { time: DUE, opts, deadline: true, ...over });
}

async function history(spine: Spine): Promise<Record<string, string>[]> {
  const entries = await spine.client.xrange(spine.keys.history, '-', '+');
  return entries.map(([, fields]) =>
    Object.fromEntries(
      Array.from({ length: fields.length / 2 }, (_, i) => [fields[i * 2], fields[i * 2 + 1]]),
    ),
  );
}

const EXPIRED = { job: 'q:a', scheduledFor: String(DUE), what: 'skipped', reason: 'expired' };

describe.each(['on', 'off'] as const)('the deadline of a one-time job, fence check %s', (fence) => {
  const open = (task: { name: string }) => Spine.virtual({ name: `${task.name} ${fence}` }, { fence });

  test('late, but not past it: the job runs', async ({ task }) => {
    const spine = await open(task);
    await spine.submit('q', [urgent()]);
    const owned = await spine.lead();
    await spine.setClock(DEADLINE);
    expect(await spine.pop(owned)).toMatchObject({ popped: 1, trouble: [] });
    expect(await history(spine)).toEqual([]);
    expect(await spine.client.lrange(`${spine.prefix}:q:wait`, 0, -1)).toEqual(['a']);
  });

  test('past it: it does not run; history, spent, count and event tell so, and nothing else is left', async ({
    task,
  }) => {
    const spine = await open(task);
    await spine.submit('q', [urgent()]);
    const owned = await spine.lead();
    await spine.setClock(DEADLINE + 1);
    const { result, changes } = await changesOf(spine, () => spine.pop(owned));
    expect(result).toMatchObject({ popped: 0, taken: 1, nextHead: 0, trouble: ['EXPIRED q:a'] });
    expect(changes).toEqual({
      'jobs q:a': null,
      'due q:a': null,
      [`heads ${BUCKET}`]: null,
      'queues q:scheduled': '0',
      'spent:1 q:a': { at: DEADLINE + 1, how: 'expired', answers: [1] },
      'meta spent': '1',
      'meta spentAt': String(DEADLINE + 1),
      'q:meta opts.maxLenEvents': '10000',
      'q:events': [{ event: 'removed', jobId: 'a', prev: 'delayed' }],
      history: [{ at: String(DEADLINE + 1), ...EXPIRED }],
    });
    await expectHealthy(spine);
  });

  test('among others, in a batch: each has its own fate', async ({ task }) => {
    const spine = await open(task);
    await spine.submit('q', [
      urgent('a'),
      aJob('b', { time: DUE }),
      urgent('c', { opts: JSON.stringify({ attempts: 0, deadline: DEADLINE * 2 }) }),
      urgent('d', { chosen: false }),
      aJob('e', { time: DEADLINE + 9 }),
    ]);
    const owned = await spine.lead();
    await spine.setClock(DEADLINE + 1);
    const replies = await spine.drain(owned);
    expect(replies).toMatchObject({ popped: 2 });
    expect((await spine.client.lrange(`${spine.prefix}:q:wait`, 0, -1)).sort()).toEqual(['b', 'c']);
    expect((await history(spine)).map(({ job, reason }) => `${job} ${reason}`).sort()).toEqual([
      'q:a expired',
      'q:d expired',
    ]);
    await spine.setClock(DEADLINE + 9);
    expect(await spine.drain(owned)).toMatchObject({ popped: 1 });
    await expectHealthy(spine);
  });

  test('I3 a call that is sent again is answered, and runs nothing; the id is free for a new one', async ({
    task,
  }) => {
    const spine = await open(task);
    await spine.submit('q', [urgent()], { requestId: 'r' });
    const owned = await spine.lead();
    await spine.setClock(DEADLINE + 1);
    await spine.pop(owned);
    const { result, changes } = await changesOf(spine, () =>
      spine.submit('q', [urgent()], { requestId: 'r' }),
    );
    expect(result).toMatchObject([{ answer: 'created', jobId: 'a', scheduledFor: DUE }]);
    // Each call takes its incarnations first.
    expect(changes).toEqual({ 'meta inc': expect.any(String) });
    expect((await spine.jobs.get('q', 'a')).ended).toEqual({ at: DEADLINE + 1, how: 5 });
    expect(await spine.submit('q', [aJob('a')])).toMatchObject([{ answer: 'created' }]);
  });

  test('its deduplication id is free again', async ({ task }) => {
    const spine = await open(task);
    const opts = JSON.stringify({ attempts: 0, de: { id: 'd', ttl: 60_000 }, deadline: DEADLINE });
    await spine.submit('q', [urgent('a', { opts, dedup: true })]);
    const owned = await spine.lead();
    await spine.setClock(DEADLINE + 1);
    await spine.pop(owned);
    expect(await spine.client.exists(spine.keys.dedup('q'))).toBe(0);
    await expectHealthy(spine);
  });

  test('given late already: it is accepted, and the pop ends it', async ({ task }) => {
    const spine = await open(task);
    const owned = await spine.lead();
    await spine.setClock(DEADLINE + 1);
    expect(await spine.submit('q', [urgent()])).toMatchObject([{ answer: 'created' }]);
    expect(await spine.client.exists(`${spine.prefix}:q:a`)).toBe(0);
    expect(await spine.pop(owned)).toMatchObject({ popped: 0, trouble: ['EXPIRED q:a'] });
    expect(await history(spine)).toMatchObject([EXPIRED]);
    await expectHealthy(spine);
  });

  test('a pause over the deadline: resumed, it ends; what a person promotes runs', async ({ task }) => {
    const spine = await open(task);
    await spine.submit('q', [urgent('a'), urgent('b')]);
    const owned = await spine.lead();
    for (const id of ['a', 'b']) await spine.jobs.pause('q', id, '', `p${id}`);
    await spine.setClock(DEADLINE + 1);
    await spine.pop(owned);
    expect(await history(spine)).toEqual([]);
    await spine.jobs.resume('q', 'a', 'ra');
    expect(await spine.pop(owned)).toMatchObject({ popped: 0, trouble: ['EXPIRED q:a'] });
    await spine.jobs.promote('q', 'b', 'rb');
    expect(await spine.client.lrange(`${spine.prefix}:q:wait`, 0, -1)).toEqual(['b']);
    await expectHealthy(spine);
  });

  test('a broken queue keeps nobody from ending', async ({ task }) => {
    const spine = await open(task);
    await spine.submit('q', [urgent()]);
    const owned = await spine.lead();
    await spine.client.set(`${spine.prefix}:q:wait`, 'broken');
    await spine.setClock(DEADLINE + 1);
    expect(await spine.pop(owned)).toMatchObject({ popped: 0, trouble: ['EXPIRED q:a'] });
    await spine.client.del(`${spine.prefix}:q:wait`);
    await expectHealthy(spine);
  });
});

describe('a deadline that leaves no time', () => {
  const refused = {
    code: 'INVALID_OPTION',
    field: 'deadline',
    message: expect.stringContaining('due at its deadline or after it'),
  };

  test('a delay beyond it is refused by the clock of Redis, and nothing of the call is stored', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    const late = urgent('a', { time: 5000, relative: true });
    const { changes } = await changesOf(spine, async () => {
      await expect(spine.submit('q', [aJob('b'), late])).rejects.toMatchObject({
        ...refused,
        message: expect.stringContaining('(job a)'),
      });
    });
    expect(changes).toEqual({});
    await spine.submit('q', [{ ...late, time: 4999 }]);
  });

  test('so is moving the job beyond it, by time or by new options', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [urgent()]);
    const { changes } = await changesOf(spine, async () => {
      await expect(spine.jobs.reschedule('q', 'a', DEADLINE, false, 'r1')).rejects.toMatchObject(refused);
      await expect(spine.jobs.reschedule('q', 'a', 5000, true, 'r2')).rejects.toMatchObject(refused);
      const opts = { opts: JSON.stringify({ attempts: 0, deadline: DUE }), deadline: true };
      await expect(spine.jobs.update('q', 'a', opts, 'r3')).rejects.toMatchObject(refused);
    });
    expect(changes).toEqual({});
    await spine.jobs.reschedule('q', 'a', DEADLINE - 1, false, 'r4');
  });

  test('new options bring a deadline or take it away', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [urgent('a'), aJob('b', { time: DUE })]);
    const owned = await spine.lead();
    await spine.jobs.update('q', 'a', { opts: '{"attempts":2}' }, 'ra');
    await spine.jobs.update('q', 'b', { opts: urgent().opts, deadline: true }, 'rb');
    await spine.setClock(DEADLINE + 1);
    expect(await spine.drain(owned)).toMatchObject({ popped: 1 });
    expect((await history(spine)).map(({ job }) => job)).toEqual(['q:b']);
    await expectHealthy(spine);
  });
});
