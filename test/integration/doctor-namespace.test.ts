import { describe, expect, test } from 'vitest';
import { examine } from '../../src/client/doctor.js';
import { bucketOf } from '../../src/domain/buckets.js';
import { HeartbeatScripts } from '../../src/redis/heartbeat-scripts.js';
import { aJob } from '../support/builders.js';
import { jobModel, scheduleModel } from '../support/builders-record.js';
import { NOW } from '../support/spine.js';
import { Patient } from './doctor-patient.js';

const LATER = NOW + 3_600_000;
const ID = 'q:a';
const B = bucketOf(ID);

describe('keys', () => {
  test('a key that nobody writes', async ({ task }) => {
    const patient = await Patient.admit(task);
    const key = `${patient.keys.tag}:256:jobs`;
    await patient.client.set(key, 'x');
    expect(await patient.findings()).toEqual([`warning key ${key}: no part of Carillon writes this string`]);
  });

  test('a key of the wrong type keeps the doctor from nothing else', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.set(patient.keys.due(B), 'x');
    await patient.client.zadd(patient.keys.due(B + 1), LATER, 'q:z');
    expect(await patient.findings()).toEqual([
      `error dangling q:z: bucket ${B + 1}: it stands in due, and there is no record`,
      `error key ${patient.keys.due(B)}: it is a string, and must be a zset`,
    ]);
  });

  test.for(['heads', 'queues', 'fence', 'leader', 'history', 'meta'] as const)(
    'the wrong type of %s',
    async (part, { task }) => {
      const patient = await Patient.admit(task);
      await patient.client.del(patient.keys[part]);
      await patient.client.rpush(patient.keys[part], 'x');
      const wanted = part === 'heads' ? 'zset' : part === 'history' ? 'stream' : 'hash';
      expect(await patient.findings()).toContain(
        `error key ${patient.keys[part]}: it is a list, and must be a ${wanted}`,
      );
    },
  );

  test('the keys that must never exist', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.set(patient.keys.none[1], 'x');
    expect(await patient.findings()).toEqual([
      `error key ${patient.keys.none[1]}: it must never exist: scripts, ours or BullMQ’s, lean on that`,
    ]);
  });

  test('a duplicate window that nobody reads any more', async ({ task }) => {
    const patient = await Patient.admit(task);
    const { keys, client } = patient;
    await client.hset(keys.meta, 'spent', 5);
    for (const generation of [3, 4, 5]) await client.hset(keys.spent(B, generation), 'q:x', 'x');
    expect(await patient.findings()).toEqual([
      `warning key ${keys.spent(B, 3)}: its generation is 3, the present one 5: nobody reads it`,
    ]);
  });

  test('a field of the queues hash that nobody reads', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.hset(patient.keys.queues, 'q:schduled', 1);
    expect(await patient.findings()).toEqual([
      `warning key ${patient.keys.queues} q:schduled: nobody reads it`,
    ]);
  });
});

describe('the layout', () => {
  test('a namespace that holds nothing is not healthy silence', async ({ task }) => {
    const { spine } = await Patient.admit(task);
    const report = await examine(spine.client, { namespace: 'nobody-was-here', prefix: 'bull' });
    expect(report.findings).toMatchObject([{ check: 'layout', severity: 'warning' }]);
    expect(await spine.client.keys('*nobody-was-here*')).toEqual([]);
  });

  test('another prefix', async ({ task }) => {
    const { spine } = await Patient.admit(task);
    const options = { namespace: spine.namespace, prefix: 'other', virtualClock: true };
    const report = await examine(spine.client, options, { pause: 1 });
    expect(report.findings).toMatchObject([
      { check: 'layout', detail: `its prefix is ${spine.prefix}, other was asked for` },
    ]);
  });

  test('the shard’s hash is another’s', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.hset(patient.keys.meta, 'layout', 'feedfacecafe');
    const [finding, ...others] = await patient.findings();
    expect(others).toEqual([]);
    expect(finding).toMatch(
      /^error layout .* its layout hash is feedfacecafe, the layout’s is [0-9a-f]{12}$/,
    );
  });

  test('a newer one', async ({ task }) => {
    const patient = await Patient.admit(task);
    const newer = { shards: 1, format: 2, prefix: patient.spine.prefix };
    await patient.client.set(patient.keys.layout, JSON.stringify(newer));
    expect((await patient.findings())[0]).toContain('its format is 2, this version writes 1');
  });

  test('gone', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.del(patient.keys.layout);
    expect(await patient.findings()).toEqual([
      `error layout ${patient.keys.layout}: it is missing, and the namespace holds data`,
    ]);
  });

  test('not to be read', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.set(patient.keys.layout, '{"shards":"one"}');
    expect(await patient.findings()).toEqual([
      `error layout ${patient.keys.layout}: it cannot be read: {"shards":"one"}`,
    ]);
  });
});

describe('counts', () => {
  test('too high, too low, below zero, of nothing', async ({ task }) => {
    const patient = await Patient.admit(task);
    const { keys, client } = patient;
    await patient.plant(ID, jobModel({ at: LATER }));
    await patient.plant('p:a', jobModel({ at: LATER, state: 'paused' }));
    await client.hset(keys.queues, 'q:scheduled', 3, 'p:paused', 0, 'q:parked', -1, 'gone:schedules', 2);
    expect(await patient.findings()).toEqual([
      'error counts gone:schedules: the count is 2, the records are 0',
      'error counts p:paused: the count is 0, the records are 1',
      'error counts q:parked: the count is -1, the records are 0',
      'error counts q:scheduled: the count is 3, the records are 1',
    ]);
  });

  test('a queue that changes while it is walked is not compared, and that is said', async ({ task }) => {
    const patient = await Patient.admit(task);
    const { spine } = patient;
    await spine.submit('q', [aJob('a')]);
    await patient.client.hincrby(patient.keys.queues, 'q:scheduled', 5);
    let busy = true;
    const traffic = (async () => {
      for (let i = 0; busy; i++) await spine.submit('q', [aJob(`n${i}`)]);
    })();
    const report = await patient.examine();
    busy = false;
    await traffic;
    expect(report.findings.filter(({ check }) => check === 'counts')).toEqual([]);
    expect(report.notes).toEqual([expect.stringContaining('1 busy queue(s) were not compared: q')]);
    expect(await patient.findings()).toEqual([expect.stringMatching(/^error counts q:scheduled/)]);
  });
});

describe('leader and fences', () => {
  test('nobody leads, and there is something to do', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }));
    const { findings, healthy } = await patient.examine();
    expect(healthy).toBe(true);
    expect(findings).toMatchObject([
      { check: 'leader', severity: 'warning', detail: 'nobody leads, and 1 timers are pending' },
    ]);
  });

  test('a heartbeat that stopped', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.plant(ID, jobModel({ at: LATER }));
    await patient.client.hset(patient.keys.leader, 'beat', NOW - 15_000);
    const { findings } = await patient.examine();
    expect(findings).toMatchObject([
      { check: 'leader', severity: 'warning', detail: 'h1 has given no heartbeat for 15s' },
    ]);
    expect((await patient.examine({ staleAfter: '16s' })).findings).toEqual([]);
  });

  test('a heartbeat is judged by the TTL that its leader told', async ({ task }) => {
    const patient = await Patient.admit(task);
    await new HeartbeatScripts(patient.spine.shard).hold('h1', 0, 30_000, false);
    await patient.plant(ID, jobModel({ at: LATER }));
    await patient.spine.setClock(NOW + 44_999);
    const leads = async () => (await patient.examine()).findings.filter(({ check }) => check === 'leader');
    expect(await leads()).toEqual([]);
    await patient.spine.setClock(NOW + 45_000);
    expect(await leads()).toMatchObject([{ detail: 'h1 has given no heartbeat for 45s' }]);
  });

  test('a fence below the leader’s', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.client.hset(patient.keys.fence, '7', '1|e|0|h0');
    expect(await patient.findings()).toEqual([
      "error fence bucket 7: its fence is 1|e|0|h0, the leader's 1|e|1|h1",
    ]);
  });

  test('a fence above every leader', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.client.hset(patient.keys.fence, '7', '1|e|2|h0', '8', '2|f|0|h0');
    expect(await patient.findings()).toEqual([
      'error fence bucket 7: its fence 1|e|2|h0 is above the highest token given out, 1',
      'error fence bucket 8: its fence 2|f|0|h0 is above the highest token given out, 1',
    ]);
  });

  test('fences that nobody could read, of no bucket, and missing', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.client.hset(patient.keys.fence, '7', 'rubbish', '256', '1|e|1|h1');
    await patient.client.hdel(patient.keys.fence, '8');
    expect(await patient.findings()).toEqual([
      'error fence bucket 7: its fence "rubbish" cannot be read',
      'error fence fences: 1 buckets have none, 1|e|1|h1 leads them',
      'error fence field 256: it is no bucket',
    ]);
  });

  test('fences that differ while nobody leads', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.client.hset(patient.keys.fence, '7', '1|e|0|h0');
    await patient.client.hdel(patient.keys.leader, 'holder', 'beat');
    expect(await patient.findings()).toEqual(['error fence fences: they differ: 1|e|1|h1, 1|e|0|h0']);
  });
});

describe('heads', () => {
  test('later than a timer that is near', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.plant(ID, jobModel({ at: NOW + 20_000 }));
    expect(await patient.findings()).toEqual([
      `error heads heads ${B}: the next timer is due at ${NOW + 20_000}, the heads show none`,
    ]);
    await patient.client.zadd(patient.keys.heads, NOW + 20_001, B);
    expect(await patient.findings()).toEqual([
      `error heads heads ${B}: the next timer is due at ${NOW + 20_000}, the heads say ${NOW + 20_001}`,
    ]);
    await patient.client.zadd(patient.keys.heads, NOW + 20_000, B);
    expect(await patient.findings()).toEqual([]);
  });

  test('a plan that nobody is told of', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.lead();
    await patient.plant(ID, scheduleModel({ cur: 0, curFire: 0, next: 0, nextFire: 0 }));
    expect(await patient.findings()).toEqual([
      `error heads heads p${B}: the next timer is due at ${NOW}, the heads show none`,
    ]);
  });

  test('far timers come within sight by and by; without a leader nothing depends on heads', async ({
    task,
  }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: NOW + 20_000 }));
    expect(await patient.findings()).toEqual([]);
    await patient.lead();
    await patient.client.zrem(patient.keys.due(B), ID);
    await patient.client.hdel(patient.keys.jobs(B), ID);
    await patient.plant(ID, jobModel({ at: NOW + 31_000 }), { count: false });
    await patient.client.zrem(patient.keys.heads, B);
    expect(await patient.findings()).toEqual([]);
  });

  test('a member that no script can read', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.zadd(patient.keys.heads, LATER, 'x7');
    expect(await patient.findings()).toEqual([
      'error heads heads x7: it is no bucket, and no script can read it',
    ]);
  });
});

describe('what is overdue', () => {
  const LATE = NOW - 10_000;

  test('and nobody leads', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATE }));
    expect(await patient.findings()).toEqual([
      'error overdue due: 1 timers are overdue by up to 10s, and nobody leads',
    ]);
  });

  test('and the leader moves nothing', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATE }));
    await patient.plant('q:s', scheduleModel({ cur: 0, curFire: 0, next: 0, nextFire: 0 }), { plan: LATE });
    await patient.lead();
    expect(await patient.findings()).toEqual([
      'error overdue due: 1 timers are overdue by up to 10s, and the leader moves none of them',
      'error overdue plan: 1 schedules wait for their planner and are overdue by up to 10s, and the leader moves none of them',
    ]);
  });

  test('a little late is no finding', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: NOW - 4999 }));
    expect(await patient.findings()).toEqual([]);
  });
});

describe('deduplication', () => {
  const opts = { opts: '{"attempts":0,"de":{"id":"d"}}', dedup: true };

  test('an entry of a pending job is in order', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.spine.submit('q', [aJob('a', opts)]);
    const report = await patient.examine();
    expect(report.looked.deduplicated).toBe(1);
    expect(report.findings.map(({ check }) => check)).toEqual(['leader']);
  });

  test('an entry whose job is gone', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.spine.submit('q', [aJob('a', opts)]);
    await patient.client.hdel(patient.keys.jobs(B), ID);
    await patient.client.zrem(patient.keys.due(B), ID);
    await patient.client.hset(patient.keys.queues, 'q:scheduled', 0);
    expect(await patient.findings()).toEqual(['warning dedup q "d": it points at q:a, which is not pending']);
  });

  test('an entry of an earlier job of the same id', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.spine.submit('q', [aJob('a', opts)]);
    const entry = await patient.client.hgetBuffer(patient.keys.dedup('q'), 'd');
    await patient.spine.jobs.cancel('q', 'a', '', 'r');
    await patient.spine.submit('q', [aJob('a', opts)]);
    await patient.client.hset(patient.keys.dedup('q'), 'd', entry as Buffer);
    expect(await patient.findings()).toEqual([
      'warning dedup q "d": it points at an earlier job of the id q:a',
    ]);
  });

  test('an entry that is none', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.hset(patient.keys.dedup('q'), 'd', 'x');
    expect(await patient.findings()).toEqual(['warning dedup q "d": the entry cannot be read']);
  });
});

describe('BullMQ’s side', () => {
  test('a key of the wrong type', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }));
    const key = patient.spine.bull('q', 'wait');
    await patient.client.set(key, 'x');
    expect(await patient.findings()).toEqual([
      `error queue q: ${key} is a string, BullMQ needs a list: its runs are parked`,
    ]);
  });

  test('a queue that stays marked', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.hset(patient.keys.queues, 'q:broken', `${NOW - 2000}|wait is a string`);
    expect(await patient.findings()).toEqual(['error queue q: it is parked for 2s: wait is a string']);
  });

  test('ids in the lists without their jobs', async ({ task }) => {
    const patient = await Patient.admit(task);
    const { spine, client } = patient;
    await spine.submit('q', [
      aJob('w', { time: 1 }),
      aJob('p', { time: 1, priority: 5, opts: '{"priority":5}' }),
    ]);
    expect((await patient.examine()).looked.runs).toBe(2);
    expect(await patient.findings()).toEqual([]);
    await client.del(spine.bull('q', 'w'), spine.bull('q', 'p'));
    expect(await patient.findings()).toEqual([
      `error orphan q p: it stands in prioritized, and there is no job ${spine.bull('q', 'p')}`,
      `error orphan q w: it stands in wait, and there is no job ${spine.bull('q', 'w')}`,
    ]);
  });
});

test('findings of one check are kept up to fifty, and all are counted', async ({ task }) => {
  const patient = await Patient.admit(task);
  const members = Array.from({ length: 60 }, (_, i) => [LATER, `q:x${i}`]).flat();
  await patient.client.zadd(patient.keys.due(B), ...(members as [number, string]));
  const report = await patient.examine();
  expect(report).toMatchObject({ errors: 60, healthy: false, omitted: { dangling: 10 } });
  expect(report.findings).toHaveLength(51);
});

test('a suspect that is in order at the second look is none', async ({ task }) => {
  const patient = await Patient.admit(task);
  await patient.lead();
  await patient.client.zadd(patient.keys.due(B), LATER, ID);
  const { client } = patient;
  const send = client.sendCommand.bind(client);
  // The walk over the buckets is over when BullMQ's queues are asked for.
  const walked = new Promise<void>((resolve) => {
    client.sendCommand = (command, ...more) => {
      if (command.args.includes(`${patient.spine.prefix}:*:meta`)) resolve();
      return send(command, ...more);
    };
  });
  const examined = patient.examine({ pause: 500 });
  await walked;
  await patient.client.zrem(patient.keys.due(B), ID);
  const report = await examined;
  expect(report.findings).toEqual([]);
  // Without a suspect there is no pause.
  expect(report.took).toBeGreaterThanOrEqual(500);
});
