import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { bullmqIncludeFile } from '../../src/redis/script-source.js';
import { aJob, aSchedule } from '../support/builders.js';
import { jobModel, packRecord, type RecordModel, scheduleModel } from '../support/builders-record.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

/** BullMQ's storeJob, which raises after its HMSET when the name says so: what a newer version might choke on. */
const storeJob = readFileSync(bullmqIncludeFile('storeJob'), 'utf8').replace(
  /(\n\s*rcall\("XADD", eventsKey)/,
  "\n    if name == 'choke' then error('choked') end$1",
);

async function plant(spine: Spine, id: string, model: RecordModel | Buffer): Promise<void> {
  const identity = `q:${id}`;
  const bucket = bucketOf(identity);
  await spine.client.hset(
    spine.keys.jobs(bucket),
    identity,
    Buffer.isBuffer(model) ? model : packRecord(model),
  );
  await spine.client.zadd(spine.keys.due(bucket), NOW, identity);
  await spine.client.zadd(spine.keys.heads, NOW, bucket);
}

test('the replaced storeJob is BullMQ’s own but for the line that raises', () => {
  expect(storeJob).toContain('HMSET');
  expect(storeJob.indexOf("error('choked')")).toBeGreaterThan(storeJob.indexOf('HMSET'));
});

describe.each(['on', 'off'] as const)('I7 poison is set aside, fence check %s', (fence) => {
  const choices = { fence, replace: { 'bullmq/storeJob': storeJob } };

  test.each<[string, RecordModel | Buffer, RegExp]>([
    ['a corrupt record', Buffer.from('garbage that is long enough to be a record'), /BAD_RECORD .*format/],
    [
      'options that are no JSON',
      jobModel({ opts: '{"attempts":' }),
      /BAD_RECORD the options are not a JSON object/,
    ],
    ['options that are a list', jobModel({ opts: '[1]' }), /BAD_RECORD the options are not a JSON object/],
    [
      'options that only Lua reads',
      jobModel({ opts: '{"attempts":NaN}' }),
      /BAD_RECORD the options are not a JSON object/,
    ],
    [
      'options with a raw line end',
      jobModel({ opts: '{"a":"\n"}' }),
      /BAD_RECORD the options are not a JSON object/,
    ],
    [
      'options that BullMQ’s Lua chokes on after its HMSET',
      jobModel({ name: 'choke' }),
      /BAD_RECORD .*choked/,
    ],
    ['the same with a priority', jobModel({ name: 'choke', priority: 4 }), /BAD_RECORD .*choked/],
    ['the same of a schedule', scheduleModel({ name: 'choke' }), /BAD_RECORD .*choked/],
    [
      'a schedule whose successor no record can hold',
      scheduleModel({ next: 2 ** 48 - 1 }),
      /BAD_RECORD .*out of range/,
    ],
    ['a schedule whose options are no JSON', scheduleModel({ opts: '{' }), /BAD_RECORD the options/],
  ])('%s: quarantined, no orphan hash in BullMQ, everything else fires', async (_what, poison, reason) => {
    const spine = await Spine.virtual({ name: 'poison' }, choices);
    await spine.submit('q', [aJob('before', { time: NOW + 1 }), aJob('after', { time: NOW + 2 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 5);
    await plant(spine, 'bad', poison);
    const { result, changes } = await changesOf(spine, () => spine.drain(owned));
    expect(result).toEqual({ popped: 2, trouble: [expect.stringMatching(/^QUARANTINED q:bad /)] });
    expect(result.trouble[0]).toMatch(reason);
    expect(changes).toMatchObject({
      'jobs q:bad': null,
      'due q:bad': null,
      'quarantine q:bad': { since: NOW + 5, reason: expect.stringMatching(reason) },
      'q:wait': ['after', 'before'],
      history: [{ job: 'q:bad', what: 'quarantined' }],
    });
    expect(hashes(changes)).toEqual(['q:after', 'q:before']);
    const kept = await spine.jobs.get('q', 'bad').catch(() => undefined);
    if (kept) expect(kept.quarantined?.reason).toMatch(reason);
  });

  test('deduplication that nobody can read: the job fires without it', async () => {
    const spine = await Spine.virtual({ name: 'bad dedup' }, choices);
    const owned = await spine.lead();
    const optionTexts = ['', '{}', '{"de":5}', '{"de":{"id":7}}', '{"de":{"id":{}}}', '{"de":[]}'];
    for (const [i, opts] of optionTexts.entries()) await plant(spine, `d${i}`, jobModel({ opts, marks: 8 }));
    expect(await spine.drain(owned)).toEqual({ popped: optionTexts.length, trouble: [] });
  });

  test('options that JSON.parse reads are fine, however they are written', async () => {
    const spine = await Spine.virtual({ name: 'odd options' }, choices);
    const owned = await spine.lead();
    const optionTexts = [
      '{ }',
      '{\n "attempts" : 2\n}',
      '{"a":"\\n\\"\\u0000"}',
      '{"m":1700000000123456,"l":[]}',
    ];
    for (const [i, opts] of optionTexts.entries()) await plant(spine, `d${i}`, jobModel({ opts }));
    expect(await spine.drain(owned)).toEqual({ popped: optionTexts.length, trouble: [] });
    const state = (await readState(spine)) as Record<string, { opts: string }>;
    for (const [i, opts] of optionTexts.entries()) {
      expect(JSON.parse(state[`q:d${i}`]?.opts ?? '')).toMatchObject(JSON.parse(opts));
    }
  });

  test('ID_TAKEN of a one-time job: set aside, the other’s hash untouched; released when it is gone', async () => {
    const spine = await Spine.virtual({ name: 'id taken' }, choices);
    const owned = await spine.lead();
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    await spine.client.hset(spine.bull('q', 'a'), 'name', 'other', 'opts', '{}');
    await spine.setClock(NOW + 1);
    const { result, changes } = await changesOf(spine, () => spine.drain(owned));
    expect(result).toEqual({ popped: 0, trouble: ['QUARANTINED q:a ID_TAKEN'] });
    expect(changes).toMatchObject({
      'jobs q:a': null,
      'due q:a': null,
      'quarantine q:a': { reason: 'ID_TAKEN', record: { at: NOW + 1 } },
      'queues q:scheduled': '0',
    });
    expect(changes).not.toHaveProperty(['q:a']);
    await spine.client.del(spine.bull('q', 'a'));
    const { changes: released } = await changesOf(spine, () =>
      spine.jobs.releaseQuarantine('q', 'a', 'release', 'r'),
    );
    expect(released).toMatchObject({
      'jobs q:a': { at: NOW + 1, state: 'scheduled' },
      'due q:a': NOW + 1,
      'quarantine q:a': null,
      'queues q:scheduled': '1',
    });
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
  });

  test('ID_TAKEN of a tick: only that tick is set aside, the schedule goes on', async () => {
    const spine = await Spine.virtual({ name: 'tick taken' }, choices);
    const owned = await spine.lead();
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r');
    const runId = `s@${NOW + 60_000}`;
    await spine.client.hset(spine.bull('q', runId), 'name', 'other');
    await spine.setClock(NOW + 60_000);
    await spine.leader.refreshHeads(owned);
    const { result, changes } = await changesOf(spine, () => spine.drain(owned));
    expect(result).toEqual({ popped: 0, trouble: [`ID_TAKEN q:${runId}`] });
    expect(changes).toMatchObject({
      'jobs q:s': { last: NOW + 60_000, cur: NOW + 120_000, next: 0 },
      'due q:s': NOW + 120_000,
      'ledger:q:s 0': `${NOW + 60_000}|quarantined|${NOW + 60_000}||ID_TAKEN`,
    });
    expect(changes).not.toHaveProperty(['quarantine q:s']);
    // It ran nothing: no limit counts it, and it overlaps with nothing.
    expect(changes).not.toHaveProperty(['jobs q:s', 'count']);
    expect(changes).not.toHaveProperty(['jobs q:s', 'open']);
    await spine.setClock(NOW + 120_000);
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
  });

  test('our own run under the id is no stranger: done before, not run again', async () => {
    const spine = await Spine.virtual({ name: 'done before' }, choices);
    const owned = await spine.lead();
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    await spine.setClock(NOW + 1);
    const before = await spine.client.hgetallBuffer(spine.keys.jobs(bucketOf('q:a')));
    await spine.drain(owned);
    // As after a failover that lost our half of the move but not BullMQ's.
    await spine.client.hset(spine.keys.jobs(bucketOf('q:a')), before);
    await plant(spine, 'a', before['q:a'] as Buffer);
    expect((await spine.drain(owned)).trouble).toEqual([]);
    expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual(['a']);
  });
});

describe('what people may write into a queue’s keys raises nothing', () => {
  test('a priority counter that is no number: the job is set aside without an orphan hash, others fire', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.client.set(spine.bull('q', 'pc'), 'abc');
    await spine.submit('q', [aJob('p', { time: NOW + 1, priority: 1 }), aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 1);
    expect(await spine.drain(owned)).toEqual({
      popped: 1,
      trouble: [expect.stringMatching(/^QUARANTINED q:p /)],
    });
    expect(hashes(await readState(spine))).toEqual(['q:a']);
  });

  test('a maxLenEvents and a concurrency that are no numbers: jobs of all queues fire', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.client.hset(spine.bull('odd', 'meta'), 'opts.maxLenEvents', 'abc', 'concurrency', 'abc');
    const owned = await spine.lead();
    for (const queue of ['a', 'odd', 'z'])
      await spine.submit(queue, [aJob('due', { time: NOW }), aJob('later', { time: NOW + 1 })]);
    await spine.setClock(NOW + 1);
    expect(await spine.drain(owned)).toEqual({ popped: 3, trouble: [] });
    for (const queue of ['a', 'odd', 'z']) {
      expect(await spine.client.lrange(spine.bull(queue, 'wait'), 0, -1)).toEqual(['later', 'due']);
    }
  });
});

describe('submit of what BullMQ’s Lua chokes on', () => {
  const choices = { replace: { 'bullmq/storeJob': storeJob } };

  test('due now: kept as a timer, set aside by the next pop; the rest of the bulk is visible to workers', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task, choices);
    const bulk = [
      aJob('a', { time: NOW }),
      aJob('bad', { time: NOW, name: 'choke' }),
      aJob('b', { time: NOW }),
    ];
    const { result, changes } = await changesOf(spine, () => spine.submit('q', bulk));
    expect(result.map(({ answer }) => answer)).toEqual(['created', 'created', 'created']);
    expect(changes).toMatchObject({ 'q:wait': ['b', 'a'], 'jobs q:bad': { inc: INC + 1 }, 'due q:bad': NOW });
    expect(hashes(changes)).toEqual(['q:a', 'q:b']);
    const { trouble } = await spine.drain(await spine.lead());
    expect(trouble).toEqual([expect.stringMatching(/^QUARANTINED q:bad BAD_RECORD .*choked/)]);
  });

  test('promote: refused, the job stays pending with its deduplication', async ({ task }) => {
    const spine = await Spine.virtual(task, choices);
    await spine.submit('q', [aJob('bad', { name: 'choke', opts: '{"de":{"id":"d"}}', dedup: true })]);
    const { changes } = await changesOf(spine, () =>
      expect(spine.jobs.promote('q', 'bad', 'r')).rejects.toMatchObject({ code: 'BAD_RECORD' }),
    );
    expect(changes).toEqual({});
  });

  test('a bulk that raises half-way: what was stored before is visible, and the repeat completes it', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    // BullMQ's own deduplication key of the wrong type is what raises in the middle.
    await spine.client.lpush(spine.bull('q', 'de:d'), 'x');
    const bulk = [
      aJob('a', { time: NOW }),
      aJob('bad', { opts: '{"de":{"id":"d","replace":true}}', dedup: true }),
      aJob('b', { time: NOW }),
    ];
    await expect(spine.submit('q', bulk, { requestId: 'r' })).rejects.toMatchObject({ code: 'BAD_SCRIPT' });
    expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual(['a']);
    await spine.client.del(spine.bull('q', 'de:d'));
    expect(await spine.submit('q', bulk, { requestId: 'r' })).toMatchObject([
      { answer: 'created' },
      { answer: 'created' },
      { answer: 'created' },
    ]);
    expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual(['b', 'a']);
  });
});

/** The names of BullMQ's job hashes in a state. */
function hashes(state: Record<string, unknown>): string[] {
  return Object.keys(state)
    .filter(
      (name) => /^q:[^ ]+$/.test(name) && typeof state[name] === 'object' && !Array.isArray(state[name]),
    )
    .sort();
}
