import { expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { aJob, aSchedule } from '../support/builders.js';
import { NOW } from '../support/spine.js';
import { Patient } from './doctor-patient.js';

const [PARENT, CHILD] = ['q:parent', 'q:child'];
const [P, C] = [bucketOf(PARENT), bucketOf(CHILD)];

/** A job that waits for another, in order. */
async function family(task: { name: string }): Promise<Patient> {
  const patient = await Patient.admit(task);
  await patient.spine.submit('q', [aJob('parent')]);
  await patient.spine.submit('q', [
    aJob('child', { after: { e: [[PARENT, 'success', '']], f: 'cancel', l: 'hold' } }),
  ]);
  return patient;
}

test('nothing is found where all is in order, nor after the parent was cancelled and the child told', async ({
  task,
}) => {
  const patient = await family(task);
  expect(await patient.findings()).toEqual([]);
  await patient.spine.jobs.cancel('q', 'parent', '', 'r');
  expect(await patient.findings()).toEqual([]);
});

const faults: Record<string, [(patient: Patient) => Promise<unknown>, string[]]> = {
  'a waiting record without its parents': [
    ({ client, keys }) => client.hdel(keys.after(C), CHILD),
    [
      `error parents ${CHILD}: bucket ${C}: it is waiting, and there is no parent that it waits for`,
      `error parents ${PARENT}: bucket ${P}: ${CHILD} is among its children, and does not wait for it`,
    ],
  ],
  'parents without a record': [
    ({ client, keys }) => client.hdel(keys.jobs(C), CHILD),
    [`error parents ${CHILD}: bucket ${C}: it waits for ${PARENT}, and there is no record`],
  ],
  'a parent that nobody looks at': [
    ({ client, keys }) => client.zrem(keys.parents(P), PARENT),
    [
      `error parents ${CHILD}: bucket ${C}: nobody looks at its parent ${PARENT}`,
      `error parents ${PARENT}: bucket ${P}: others wait for it, and nobody looks at it`,
    ],
  ],
  'a parent that does not know its child': [
    ({ client, keys }) => client.srem(keys.children(PARENT), CHILD),
    [`error parents ${CHILD}: bucket ${C}: its parent ${PARENT} does not know of it`],
  ],
  'an outcome that was told to all others': [
    ({ client, keys }) => client.hset(keys.outcomes(P), PARENT, 'dead|1|*|'),
    [`error parents ${CHILD}: bucket ${C}: it was not told that its parent ${PARENT} has ended`],
  ],
};

test.for(Object.entries(faults))('%s', async ([, [plant, expected]], { task }) => {
  const patient = await family(task);
  await plant(patient);
  const found = await patient.findings();
  expect(found.filter((line) => line.startsWith('error parents'))).toEqual(expected);
});

test('the latch itself must never exist', async ({ task }) => {
  const patient = await Patient.admit(task);
  await patient.client.set(patient.keys.latch, 'x');
  expect(await patient.findings()).toEqual([
    expect.stringContaining(`error key ${patient.keys.latch}: it must never`),
  ]);
});

test('a followed schedule whose runs are not watched, and a follower that follows no more', async ({
  task,
}) => {
  const patient = await Patient.admit(task);
  const { client, keys, spine } = patient;
  await spine.schedules.upsert('q', 'a', aSchedule(NOW), 'r1');
  const policies = '{"every":60000,"missed":"skip","after":["a"]}';
  await spine.schedules.upsert('q', 'b', aSchedule(NOW, { policies }), 'r2');
  const found = async () => (await patient.findings()).filter((line) => line.startsWith('error parents'));
  expect(await found()).toEqual([]);
  await client.srem(keys.watched, 'q:a');
  expect(await found()).toEqual([
    'error parents q:b: it follows q:a, and that schedule’s runs are not watched',
  ]);
  await client.sadd(keys.watched, 'q:a');
  await client.sadd(keys.followers('q:a'), 'q:c');
  expect(await found()).toEqual(['error parents q:a: q:c is among its followers, and does not follow it']);
});
