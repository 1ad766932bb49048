import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { recordZone } from '../../src/domain/recorded-offsets.js';
import { HOST_TIME_ZONES } from '../../src/domain/time-zone-offsets.js';
import { GateScripts } from '../../src/redis/gate-scripts.js';
import { HeartbeatScripts } from '../../src/redis/heartbeat-scripts.js';
import { RunControlScripts } from '../../src/redis/run-control-scripts.js';
import type { ScriptFlag } from '../../src/redis/script-source.js';
import { statusError } from '../../src/redis/status.js';
import { TimeZoneStore } from '../../src/redis/time-zone-store.js';
import { aJob, aSchedule } from '../support/builders.js';
import { NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

const BUCKET = bucketOf('q:a');

describe('release-quarantine', () => {
  /** A job set aside because its options are no JSON. */
  async function setup(task: { name: string }) {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 5, opts: '{"attempts":' })]);
    await spine.setClock(NOW + 5);
    const owned = await spine.lead();
    expect((await spine.drain(owned)).trouble).toHaveLength(1);
    return { spine, owned };
  }

  test('OK, release: due again, counted again, its request remembered', async ({ task }) => {
    const { spine, owned } = await setup(task);
    const { result, changes } = await changesOf(spine, () =>
      spine.jobs.releaseQuarantine('q', 'a', 'release', 'r'),
    );
    expect(result).toMatchObject({ now: NOW + 5, record: { kind: 'job', at: NOW + 5 } });
    expect(changes).toEqual({
      'jobs q:a': expect.objectContaining({ state: 'scheduled', at: NOW + 5, requests: 2 }),
      'due q:a': NOW + 5,
      'quarantine q:a': null,
      'queues q:scheduled': '1',
      [`heads ${BUCKET}`]: NOW + 5,
    });
    // What was wrong with it still is; once it is mended it fires.
    await spine.drain(owned);
    await spine.jobs.releaseQuarantine('q', 'a', 'release', 'r2');
    await spine.jobs.update('q', 'a', { opts: '{"attempts":2}' }, 'u');
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
  });

  test('OK, discard: gone for good, with a line of history; its id is free', async ({ task }) => {
    const { spine } = await setup(task);
    const { changes } = await changesOf(spine, () => spine.jobs.releaseQuarantine('q', 'a', 'discard', 'r'));
    expect(changes).toMatchObject({
      'quarantine q:a': null,
      'spent:1 q:a': { at: NOW + 5, how: 'cancelled', answers: [5, 1] },
      history: [{ what: 'quarantined' }, { job: 'q:a', what: 'discarded' }],
    });
    expect(await spine.submit('q', [aJob('a')])).toMatchObject([{ answer: 'created' }]);
  });

  test('OK, discard of what nobody can read', async ({ task }) => {
    const { spine } = await setup(task);
    const kept = Buffer.concat([
      Buffer.from([0, 0, 0, 0, 0, 1, 0, 3]),
      Buffer.from('why'),
      Buffer.from('garbage'),
    ]);
    await spine.client.hset(spine.keys.quarantine(BUCKET), 'q:a', kept);
    await expect(spine.jobs.releaseQuarantine('q', 'a', 'release', 'r')).rejects.toMatchObject({
      code: 'BAD_RECORD',
    });
    expect((await spine.jobs.get('q', 'a')).quarantined).toEqual({ since: 1, reason: 'why' });
    await spine.jobs.releaseQuarantine('q', 'a', 'discard', 'd').catch((error: { code: string }) => {
      // The record that was dropped cannot be handed back either.
      expect(error.code).toBe('BAD_RECORD');
    });
    expect((await spine.jobs.get('q', 'a')).quarantined).toBeUndefined();
  });

  test('ID_IN_USE: another job has the id by now; the one set aside stays', async ({ task }) => {
    const { spine } = await setup(task);
    await spine.submit('q', [aJob('a', { data: '"new"' })]);
    const { changes } = await changesOf(spine, () =>
      expect(spine.jobs.releaseQuarantine('q', 'a', 'release', 'r')).rejects.toMatchObject({
        code: 'ID_IN_USE',
      }),
    );
    expect(changes).toEqual({});
  });

  test('NOT_FOUND', async ({ task }) => {
    const { spine } = await setup(task);
    await expect(spine.jobs.releaseQuarantine('q', 'b', 'release', 'r')).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});

describe('WRONG_LAYOUT: no script touches a namespace that was laid out otherwise', () => {
  const fence = '1|e|1|h1';
  const owned = [{ first: 0, last: 255, servedFrom: 0, fence }];
  /** Without arguments of its own: the layout is judged before them. */
  const bare = (name: string, flag: ScriptFlag) => async (spine: Spine) => {
    throw statusError(
      (
        await spine.shard.run(
          name,
          flag,
          Array.from({ length: 9 }, () => '0'),
        )
      ).status,
    );
  };
  const calls: Record<string, (spine: Spine) => Promise<unknown>> = {
    'submit-jobs': (spine) => spine.submit('q', [aJob('n')]),
    'reschedule-job': (spine) => spine.jobs.reschedule('q', 'a', 1, true, 'r'),
    'update-job': (spine) => spine.jobs.update('q', 'a', {}, 'r'),
    'cancel-job': (spine) => spine.jobs.cancel('q', 'a', '', 'r'),
    'pause-job': (spine) => spine.jobs.pause('q', 'a', '', 'r'),
    'resume-job': (spine) => spine.jobs.resume('q', 'a', 'r'),
    'promote-job': (spine) => spine.jobs.promote('q', 'a', 'r'),
    'release-quarantine': (spine) => spine.jobs.releaseQuarantine('q', 'a', 'release', 'r'),
    'get-job': (spine) => spine.jobs.get('q', 'a'),
    'list-jobs': (spine) => spine.jobs.list(0, '0', {}),
    'list-due': (spine) => spine.jobs.listDue(0, 0, 10),
    'drop-dedup': (spine) => spine.jobs.dropDedup('q', 'd'),
    'upsert-schedule': (spine) => spine.schedules.upsert('q', 's', aSchedule(NOW), 'r'),
    'pop-due': (spine) => spine.pop(owned),
    'read-plan': (spine) => spine.leader.readPlan([0], 10, 1000),
    'set-next': (spine) => spine.leader.setNext(owned, []),
    'take-over': (spine) => spine.leader.takeOver(owned),
    'unpark-queue': (spine) => spine.leader.unparkQueue(owned, 'q', { bucket: 0, offset: 0 }, 10),
    'refresh-heads': (spine) => spine.leader.refreshHeads(owned),
    'sweep-bucket': (spine) => spine.leader.sweepBucket(owned, 0, '0', 10),
    'rotate-spent': (spine) => spine.leader.rotateSpent(0, 0, 0),
    'trigger-schedule': (spine) => spine.schedules.trigger('q', 's', '+x', false, 'r'),
    'backfill-schedule': (spine) =>
      spine.schedules.backfill('q', 's', [], { suffix: '', beside: true, dry: false }, 'r'),
    'adopt-delayed': bare('adopt-delayed', 'deny-oom'),
    'return-delayed': bare('return-delayed', 'deny-oom'),
    'drop-job-scheduler': bare('drop-job-scheduler', 'allow-oom'),
    'set-calendar': bare('set-calendar', 'deny-oom'),
    'calendar-users': bare('calendar-users', 'read-only'),
    'count-due': bare('count-due', 'read-only'),
    'zone-users': (spine) => new TimeZoneStore(spine.shard).users(0, ['UTC']).next(),
    'set-zone': (spine) =>
      new TimeZoneStore(spine.shard).set(
        'UTC',
        '',
        recordZone('2024a', HOST_TIME_ZONES.offsetsOf('UTC'), NOW),
        'keep',
      ),
    'adopt-epoch': bare('adopt-epoch', 'allow-oom'),
    'claim-run': bare('claim-run', 'allow-oom'),
    'checkpoint-run': bare('checkpoint-run', 'deny-oom'),
    'record-effect': bare('record-effect', 'deny-oom'),
    'leave-run': bare('leave-run', 'allow-oom'),
    'beat-worker': bare('beat-worker', 'allow-oom'),
    'requeue-dead': bare('requeue-dead', 'deny-oom'),
    'carry-zone': (spine) => new TimeZoneStore(spine.shard).beginCarrying(owned, 0, ['UTC']),
    'cancel-run': (spine) => new RunControlScripts(spine.shard).cancel('q', 'b', '', 'r'),
    'pause-run': (spine) => new RunControlScripts(spine.shard).pause('q', 'b', '', 'r'),
    'resume-run': (spine) => new RunControlScripts(spine.shard).resume('q', 'b', 'r'),
    'change-waiting-run': bare('change-waiting-run', 'allow-oom'),
    'update-run': (spine) => new RunControlScripts(spine.shard).update('q', 'b', {}, 'r'),
    'reschedule-run': (spine) => new RunControlScripts(spine.shard).reschedule('q', 'b', 1, true, 'r'),
    'announce-parents': bare('announce-parents', 'deny-oom'),
    'read-parents': bare('read-parents', 'read-only'),
    'look-at-parents': bare('look-at-parents', 'deny-oom'),
    'due-gates': (spine) => new GateScripts(spine.shard).due(10),
    'drain-gate': (spine) => new GateScripts(spine.shard).drain(owned, 'q', 0, { limit: 1, bytes: 1 }),
    'set-gate': (spine) => new GateScripts(spine.shard).set('q', {}, true),
    'hold-leadership': (spine) => new HeartbeatScripts(spine.shard).hold('me', 0, 5000, true),
  };

  test.each(Object.entries(calls))('%s', async (_script, call) => {
    const spine = await Spine.virtual({ name: 'wrong layout' });
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    await spine.client.hset(spine.keys.meta, 'layout', 'another');
    await spine.setClock(NOW + 5);
    const { changes } = await changesOf(spine, () =>
      expect(call(spine)).rejects.toMatchObject({ code: 'WRONG_LAYOUT' }),
    );
    expect(changes).toEqual({});
  });

  test('every script is among them', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const scripts = readdirSync(new URL('../../lua', import.meta.url)).filter((file) =>
      file.endsWith('.lua'),
    );
    expect(scripts.map((file) => file.slice(0, -4)).filter((name) => !(name in calls))).toEqual([]);
    expect(Object.keys(await readState(spine))).toEqual(['meta layout']);
  });
});

test('cancel-job and update-job: of the kind that was meant, and never away from a deduplication', async ({
  task,
}) => {
  const spine = await Spine.virtual(task);
  await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r');
  await spine.submit('q', [aJob('d', { opts: '{"de":{"id":"x"}}', dedup: true }), aJob('a')]);
  const { changes } = await changesOf(spine, async () => {
    await expect(spine.jobs.cancel('q', 's', '', 'c', 'job')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    await expect(spine.jobs.cancel('q', 'a', '', 'c', 'schedule')).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(spine.jobs.update('q', 'd', { opts: '{}' }, 'u')).rejects.toMatchObject({
      code: 'CONFLICT',
    });
  });
  expect(changes).toEqual({});
  const kept = { opts: '{"de":{"id":"x"},"attempts":2}', deduplicationId: 'x' };
  await spine.jobs.update('q', 'd', kept, 'u');
  expect((await spine.jobs.get('q', 'd')).record?.opts).toBe(kept.opts);
});
