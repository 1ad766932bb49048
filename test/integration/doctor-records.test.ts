import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { FLAGS } from '../../src/redis/record.js';
import { aRun, jobModel, packRecord, scheduleModel } from '../support/builders-record.js';
import { INC, NOW } from '../support/spine.js';
import { Patient } from './doctor-patient.js';

const LATER = NOW + 3_600_000;
const ID = 'q:a';
const B = bucketOf(ID);

test('records of every state, in their places, are healthy', async ({ task }) => {
  const patient = await Patient.admit(task);
  await patient.lead();
  await patient.plant('q:job', jobModel({ at: LATER }));
  await patient.plant('q:paused', jobModel({ state: 'paused', at: 5 }));
  await patient.plant(
    'q:ticking',
    scheduleModel({ cur: LATER, curFire: LATER, next: LATER + 1, nextFire: LATER + 2 }),
  );
  await patient.plant('q:fresh', scheduleModel({ cur: 0, curFire: 0, next: 0, nextFire: 0 }));
  await patient.plant('q:missed', scheduleModel({ marks: FLAGS.overdue }));
  await patient.plant(
    'q:last-tick',
    scheduleModel({ cur: LATER, curFire: LATER, next: 0, nextFire: 0, marks: FLAGS.last }),
  );
  await patient.plant(
    'q:runs-wait',
    scheduleModel({
      cur: 0,
      curFire: 0,
      next: 0,
      nextFire: 0,
      marks: FLAGS.last,
      check: LATER,
      waiting: [aRun(5)],
    }),
  );
  await patient.client.hset(patient.keys.ledger('q:missed'), 0, '5|skipped|6||missed');
  await patient.plant('q:still', scheduleModel({ state: 'paused' }));
  await patient.plant('q:ended', scheduleModel({ state: 'ended', cur: 0, curFire: 0, next: 0, nextFire: 0 }));
  await patient.spine.leader.refreshHeads(await patient.spine.lead(1, 'h1'));
  const report = await patient.examine();
  expect(report.findings).toEqual([]);
  expect(report).toMatchObject({
    healthy: true,
    looked: { records: 9, queues: 1 },
    leader: { holder: 'h1', token: 1 },
  });
});

describe('a record and its indexes', () => {
  test('not in due', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }), { due: undefined });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it is scheduled and does not stand in due`,
    ]);
  });

  test('in due at another time', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }), { due: LATER + 1 });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: due has it at ${LATER + 1}, its record says ${LATER}`,
    ]);
  });

  test('in two indexes', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }), { parked: LATER });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it is scheduled and stands in parked`,
    ]);
  });

  test('paused, and in due', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER, state: 'paused' }), { due: LATER });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it is paused and stands in due`,
    ]);
  });

  test('a one-time job on plan', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }), { plan: LATER });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: a one-time job stands in plan`,
    ]);
  });

  test('parked at another time', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.hset(patient.keys.queues, 'q:broken', `${NOW}|wait is a string`);
    await patient.client.set(patient.spine.bull('q', 'wait'), 'x');
    await patient.plant(ID, jobModel({ at: 7, state: 'parked' }), { parked: 8 });
    expect(await patient.findings()).toContain(
      `error index ${ID}: bucket ${B}: parked has it at 8, its record says 7`,
    );
  });

  test.for(['due', 'parked', 'plan'] as const)('%s names nothing', async (index, { task }) => {
    const patient = await Patient.admit(task);
    await patient.client.zadd(patient.keys[index](B), LATER, ID);
    expect(await patient.findings()).toEqual([
      `error dangling ${ID}: bucket ${B}: it stands in ${index}, and there is no record`,
    ]);
  });

  test('in the bucket of another identity', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }), { bucket: (B + 1) % 256 });
    expect(await patient.findings()).toEqual([
      `error place ${ID}: bucket ${(B + 1) % 256}: it belongs to bucket ${B}`,
    ]);
  });

  test('an identity without a queue', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant('stray', jobModel({ at: LATER }), { count: false });
    const [finding, ...others] = await patient.findings();
    expect(finding).toMatch(/^error counts/);
    expect(others).toEqual([`error place stray: bucket ${bucketOf('stray')}: the identity names no queue`]);
  });

  test('a parked record whose queue nobody probes', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: 7, state: 'parked' }));
    expect(await patient.findings()).toEqual([
      `error parked ${ID}: bucket ${B}: it is parked, and its queue is not marked as broken`,
    ]);
  });
});

describe('a record itself', () => {
  test('bytes that are none', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }), { bytes: packRecord(jobModel()).subarray(0, 10) });
    const [finding, ...others] = await patient.findings();
    expect(others).toEqual([]);
    expect(finding).toMatch(new RegExp(`^error record ${ID}: bucket ${B}: not a record.*ends early`));
  });

  test('a format of no version', async ({ task }) => {
    const patient = await Patient.admit(task);
    const bytes = packRecord(jobModel({ at: LATER }));
    bytes.writeUInt8(7 * 16, 0);
    await patient.plant(ID, jobModel({ at: LATER }), { bytes });
    expect(await patient.findings()).toEqual([expect.stringContaining(`error record ${ID}: bucket ${B}`)]);
  });

  test('a newer format', async ({ task }) => {
    const patient = await Patient.admit(task);
    const bytes = packRecord(jobModel({ at: LATER }));
    bytes.writeUInt8(2 * 16, 0);
    await patient.plant(ID, jobModel({ at: LATER }), { bytes });
    expect(await patient.findings()).toEqual([
      `error format ${ID}: bucket ${B}: its format is 2, this version reads 1`,
    ]);
  });

  test('a newer incarnation than the counter', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: LATER }));
    await patient.client.hset(patient.keys.meta, 'inc', INC - 1);
    expect(await patient.findings()).toEqual([
      `error counter ${patient.keys.meta}: the counter is ${INC - 1}, a record has ${INC}`,
    ]);
  });

  test('one that was set aside', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, jobModel({ at: NOW - 1 }), { bytes: Buffer.from('rubbish, much too long') });
    await patient.spine.drain(await patient.spine.lead());
    await patient.client.hdel(patient.keys.leader, 'holder');
    const [finding, ...others] = await patient.findings();
    expect(others).toEqual([]);
    expect(finding).toMatch(/^warning quarantine q:a: set aside at 2027-01-15T08:00:00.000Z: BAD_RECORD/);
  });

  test('one that was set aside, and cannot be told why', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.client.hset(patient.keys.quarantine(B), ID, 'x');
    expect(await patient.findings()).toEqual([`error quarantine ${ID}: the entry cannot be read`]);
  });
});

describe('a schedule', () => {
  test('neither due nor on plan', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(
      ID,
      scheduleModel({ cur: LATER, curFire: LATER, next: LATER + 1, nextFire: LATER + 1 }),
      {
        due: undefined,
      },
    );
    expect(await patient.findings()).toEqual([
      `error silent ${ID}: bucket ${B}: it is active, and neither has a pending tick in due nor is on plan`,
    ]);
  });

  test('in due without a pending tick', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, scheduleModel({ cur: 0, curFire: 0, next: 0, nextFire: 0 }), { due: LATER });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it is scheduled and stands in due`,
    ]);
  });

  test('on plan, and asks for nothing', async ({ task }) => {
    const patient = await Patient.admit(task);
    const at = { cur: LATER, curFire: LATER, next: LATER + 1, nextFire: LATER + 1 };
    await patient.plant(ID, scheduleModel(at), { plan: NOW });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it asks for nothing, and stands in plan`,
    ]);
  });

  test('asks for its successor, and is not on plan', async ({ task }) => {
    const patient = await Patient.admit(task);
    const at = { cur: LATER, curFire: LATER, next: 0, nextFire: 0 };
    await patient.plant(ID, scheduleModel(at), { plan: undefined });
    expect(await patient.findings()).toEqual([
      `error silent ${ID}: bucket ${B}: it asks for the planner, and is not on plan`,
    ]);
  });

  test('an overdue tick in due: nobody may fire it before it is judged', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, scheduleModel({ marks: FLAGS.overdue }), { due: LATER, plan: NOW });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it is scheduled and stands in due`,
    ]);
  });

  test('in due at its tick, where runs that wait are to be looked at before', async ({ task }) => {
    const patient = await Patient.admit(task);
    const at = { cur: LATER, curFire: LATER, next: LATER + 1, nextFire: LATER + 1 };
    await patient.plant(ID, scheduleModel({ ...at, check: LATER - 9, waiting: [aRun(5)] }), { due: LATER });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: due has it at ${LATER}, its record says ${LATER - 9}`,
    ]);
  });

  test('its runs wait, and nothing looks at them', async ({ task }) => {
    const patient = await Patient.admit(task);
    const at = { cur: LATER, curFire: LATER, next: LATER + 1, nextFire: LATER + 1 };
    await patient.plant(ID, scheduleModel({ ...at, waiting: [aRun(5), aRun(6)] }));
    expect(await patient.findings()).toEqual([
      `error silent ${ID}: bucket ${B}: 2 of its runs wait, and nothing looks at them`,
    ]);
  });

  test('its ledger stayed when it was deleted', async ({ task }) => {
    const patient = await Patient.admit(task);
    const key = patient.keys.ledger('q:gone:by');
    await patient.client.hset(key, 0, '5|dispatched|6||');
    expect(await patient.findings()).toEqual([
      `warning key ${key}: there is no schedule of that name: nobody reads it`,
    ]);
  });

  test('paused, and on plan', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, scheduleModel({ state: 'paused' }), { plan: NOW });
    expect(await patient.findings()).toEqual([
      `error index ${ID}: bucket ${B}: it is paused and stands in plan`,
    ]);
  });

  test.for([
    [{ last: LATER }, 'is not after its last one'],
    [{ curFire: LATER - 1 }, 'would fire early'],
    [{ next: LATER }, 'is not after its pending tick'],
    [{ nextFire: LATER + 1 }, 'would fire early'],
    [{ cur: 0, curFire: 0 }, 'and no pending tick'],
  ] as const)('ticks out of order: %o', async ([over, detail], { task }) => {
    const patient = await Patient.admit(task);
    const ticks = { cur: LATER, curFire: LATER, next: LATER + 60_000, nextFire: LATER + 60_000, ...over };
    await patient.plant(ID, scheduleModel(ticks));
    const findings = await patient.findings();
    expect(findings).toHaveLength(1);
    expect(findings[0]).toContain(`error ticks ${ID}`);
    expect(findings[0]).toContain(detail);
  });

  test('a definition that cannot be planned', async ({ task }) => {
    const patient = await Patient.admit(task);
    const policies = '{"cron":["0 3 * * X"],"missed":"skip"}';
    await patient.plant(
      ID,
      scheduleModel({ cur: LATER, curFire: LATER, next: LATER + 1, nextFire: LATER + 1, policies }),
    );
    const [finding, ...others] = await patient.findings();
    expect(others).toEqual([]);
    expect(finding).toContain(`error definition ${ID}`);
  });

  test('suspended', async ({ task }) => {
    const patient = await Patient.admit(task);
    await patient.plant(ID, scheduleModel({ state: 'suspended', note: 'no such zone' }));
    expect(await patient.findings()).toEqual([`warning suspended ${ID}: bucket ${B}: no such zone`]);
  });
});
