import { describe, expect, test } from 'vitest';
import { aJob, aSchedule } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { NOW, Spine } from '../support/spine.js';
import { changesOf, readState, type SpineState } from '../support/spine-state.js';

/**
 * A mutating call whose reply is lost is sent again by the Redis client: it must have its effect once and give the
 * same answer. Each case is prepared twice; one namespace gets the call over a good line, the other over a proxy
 * that drops the first reply. Both must end alike.
 */
interface Mutation {
  script: string;
  prepare?: (spine: Spine) => Promise<unknown>;
  act: (spine: Spine) => Promise<unknown>;
}

const pending = (spine: Spine) => spine.submit('q', [aJob('a')], { requestId: 'r0' });
const aScheduleThere = (spine: Spine) => spine.schedules.upsert('q', 's', aSchedule(NOW), 'r0');

/** A job that was set aside because BullMQ held another one under its id. */
async function quarantined(spine: Spine): Promise<void> {
  await pending(spine);
  await spine.client.hset(spine.bull('q', 'a'), 'name', 'other');
  await spine.setClock(NOW + 3_600_000);
  const owned = await spine.lead();
  const { trouble } = await spine.drain(owned);
  expect(trouble).toEqual(['QUARANTINED q:a ID_TAKEN']);
  await spine.client.del(spine.bull('q', 'a'));
}

const MUTATIONS: Mutation[] = [
  { script: 'submit-jobs', act: (spine) => spine.submit('q', [aJob('a'), aJob('b')], { requestId: 'r' }) },
  {
    script: 'submit-jobs (due now)',
    act: (spine) =>
      spine.submit('q', [aJob('a', { time: NOW }), aJob('b', { time: NOW })], { requestId: 'r' }),
  },
  {
    script: 'submit-jobs (generated ids)',
    act: (spine) =>
      spine.submit('q', [aJob('x', { chosen: false }), aJob('y', { chosen: false, time: NOW })], {
        requestId: 'r',
      }),
  },
  {
    script: 'submit-jobs (existing)',
    prepare: pending,
    act: (spine) => spine.submit('q', [aJob('a', { time: NOW + 5 })], { requestId: 'r' }),
  },
  {
    script: 'submit-jobs (replace)',
    prepare: pending,
    act: (spine) => spine.submit('q', [aJob('a', { time: NOW + 5000, replace: true })], { requestId: 'r' }),
  },
  {
    script: 'reschedule-job',
    prepare: pending,
    act: (spine) => spine.jobs.reschedule('q', 'a', 7000, true, 'r'),
  },
  { script: 'update-job', prepare: pending, act: (spine) => spine.jobs.update('q', 'a', { data: '2' }, 'r') },
  { script: 'pause-job', prepare: pending, act: (spine) => spine.jobs.pause('q', 'a', 'why', 'r') },
  {
    script: 'resume-job',
    prepare: async (spine) => {
      await pending(spine);
      await spine.jobs.pause('q', 'a', '', 'p');
    },
    act: (spine) => spine.jobs.resume('q', 'a', 'r'),
  },
  {
    script: 'cancel-job',
    prepare: pending,
    act: (spine) => spine.jobs.cancel('q', 'a', 'no', 'r').then(gone),
  },
  { script: 'promote-job', prepare: pending, act: (spine) => spine.jobs.promote('q', 'a', 'r').then(gone) },
  { script: 'upsert-schedule', act: (spine) => spine.schedules.upsert('q', 's', aSchedule(NOW), 'r') },
  {
    script: 'upsert-schedule (edit)',
    prepare: aScheduleThere,
    act: async (spine) => {
      const { record } = await spine.jobs.get('q', 's');
      const expected = { inc: record?.inc ?? 0, ver: record?.ver ?? 0, last: 0 };
      return spine.schedules.upsert('q', 's', aSchedule(NOW, { expected, keepTicks: true, data: '2' }), 'r');
    },
  },
  {
    script: 'release-quarantine',
    prepare: quarantined,
    act: (spine) => spine.jobs.releaseQuarantine('q', 'a', 'release', 'r').then(gone),
  },
  {
    script: 'release-quarantine (discard)',
    prepare: quarantined,
    act: (spine) => spine.jobs.releaseQuarantine('q', 'a', 'discard', 'r').then(gone),
  },
];

/** A replay tells that the call was carried out; the record that it removed is not kept for it. */
function gone({ now }: { now: number }) {
  return { now };
}

/** Two namespaces in the same state; incarnations are the same too, since both clocks stand still. */
async function twins(name: string, prepare: Mutation['prepare']): Promise<[Spine, Spine]> {
  const [plain, faulty] = [await Spine.virtual({ name }), await Spine.virtual({ name })];
  for (const spine of [plain, faulty]) await prepare?.(spine);
  return [plain, faulty];
}

/** States of two namespaces can be compared once their names are out of them. */
async function comparable(spine: Spine): Promise<SpineState> {
  const state = JSON.parse(
    JSON.stringify(await readState(spine)).replaceAll(spine.namespace, 'ns'),
  ) as SpineState;
  // The layout's hash is made of the prefix, and a submit takes its step of the counter before it knows its request.
  delete state['meta layout'];
  delete state['meta inc'];
  return state;
}

describe('a re-sent call has its effect once and gives the same answer', () => {
  test.each(MUTATIONS)('$script', async ({ script, prepare, act }) => {
    const [plain, faulty] = await twins('resent', prepare);
    const proxy = await FaultProxy.start({ port: Number(new URL(plain.url).port) });
    const through = await Spine.open({
      url: proxy.url,
      namespace: faulty.namespace,
      choices: { clock: 'virtual' },
    });
    // The text of the script goes once over the line before, so that EVALSHA is what is lost.
    const answer = await act(plain);
    const drop = proxy.dropReplies(
      1,
      new RegExp(`^\\*\\d+\\r\\n\\$7\\r\\nEVALSHA(?=[^]*${faulty.namespace})`),
    );
    expect(await act(through), script).toEqual(answer);
    expect(drop.dropped).toBe(1);
    expect(await comparable(faulty)).toEqual(await comparable(plain));
  });

  test.each(MUTATIONS)('$script, called again with its request id', async ({ prepare, act }) => {
    const spine = await Spine.virtual({ name: 'again' });
    await prepare?.(spine);
    const answer = await act(spine);
    const { result, changes } = await changesOf(spine, () => act(spine));
    expect(result).toEqual(answer);
    delete changes['meta inc'];
    expect(changes).toEqual({});
  });

  test('a delay counts from the first call, also when the job ran before the repeat', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const due = { time: 0, relative: true };
    const soon = { time: 500, relative: true };
    const bulk = [aJob('a', due), aJob('b', soon), aJob('g', { ...due, chosen: false })];
    const answer = await spine.submit('q', bulk, { requestId: 'r' });
    await spine.setClock(NOW + 500);
    await spine.drain(await spine.lead());
    await spine.setClock(NOW + 3000);
    expect(await spine.submit('q', bulk, { requestId: 'r' })).toEqual(answer);
  });

  test('the last few requests of a job are told apart, also when another call came in between', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await pending(spine);
    await spine.jobs.reschedule('q', 'a', 7000, true, 'r1');
    await spine.jobs.reschedule('q', 'a', 9000, true, 'r2');
    await spine.jobs.update('q', 'a', { data: '2' }, 'r3');
    const { changes } = await changesOf(spine, async () => {
      await spine.jobs.reschedule('q', 'a', 7000, true, 'r1');
      await spine.submit('q', [aJob('a')], { requestId: 'r0' });
    });
    delete changes['meta inc'];
    expect(changes).toEqual({});
  });
});

describe('a re-sent call of an earlier job leaves the later one of the same id alone', () => {
  const later = (spine: Spine) => spine.submit('q', [aJob('a', { time: NOW + 9000, data: '"later"' })]);

  test('cancel', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await pending(spine);
    await spine.jobs.cancel('q', 'a', '', 'r');
    await later(spine);
    await spine.jobs.cancel('q', 'a', '', 'r');
    expect((await spine.jobs.get('q', 'a')).record).toMatchObject({ data: '"later"' });
  });

  test('submit with replace, after the job was replaced by somebody else', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const first = [aJob('a', { replace: true })];
    const answer = await spine.submit('q', first, { requestId: 'r' });
    await spine.submit('q', [aJob('a', { replace: true, data: '"later"' })]);
    expect((await spine.submit('q', first, { requestId: 'r' }))[0]?.answer).toBe(answer[0]?.answer);
    expect((await spine.jobs.get('q', 'a')).record).toMatchObject({ data: '"later"' });
  });

  test('submit with replace, after the job was cancelled and added anew', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const first = [aJob('a', { replace: true })];
    await spine.submit('q', first, { requestId: 'r' });
    await spine.jobs.cancel('q', 'a', '', 'c');
    await later(spine);
    await spine.submit('q', first, { requestId: 'r' });
    expect((await spine.jobs.get('q', 'a')).record).toMatchObject({ data: '"later"' });
  });
});

describe('a job or schedule that ended is not resurrected by a re-sent call', () => {
  test('submit, after the job was cancelled', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const answer = await spine.submit('q', [aJob('a')], { requestId: 'r' });
    await spine.jobs.cancel('q', 'a', '', 'c');
    expect(await spine.submit('q', [aJob('a')], { requestId: 'r' })).toEqual(answer);
    expect((await spine.jobs.get('q', 'a')).record).toBeUndefined();
  });

  test('submit, after deduplication put another job in its place', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const opts = '{"de":{"id":"d","replace":true}}';
    const first = [aJob('a', { opts, dedup: true })];
    await spine.submit('q', first, { requestId: 'r' });
    await spine.submit('q', [aJob('b', { opts, dedup: true })]);
    await spine.submit('q', first, { requestId: 'r' });
    expect((await spine.jobs.get('q', 'a')).record).toBeUndefined();
    expect((await spine.jobs.get('q', 'b')).record).toBeDefined();
  });

  test('submit, after the job ran and left BullMQ', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW, window: 0 })], { requestId: 'r' });
    await spine.client.del(spine.bull('q', 'a'), spine.bull('q', 'wait'));
    await spine.submit('q', [aJob('a', { time: NOW, window: 0 })], { requestId: 'r' });
    expect(await spine.client.exists(spine.bull('q', 'a'), spine.bull('q', 'wait'))).toBe(0);
  });

  test('upsert of a schedule that was deleted', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await aScheduleThere(spine);
    await spine.jobs.cancel('q', 's', '', 'c');
    await expect(aScheduleThere(spine)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await spine.jobs.get('q', 's')).record).toBeUndefined();
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'new');
    expect((await spine.jobs.get('q', 's')).record).toBeDefined();
  });
});

test('B40 SCRIPT FLUSH all the time: no call fails, each has its effect once', async ({ task }) => {
  const server = await startRedis({ appendfsync: 'no' });
  const choices = { clock: 'virtual' } as const;
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task), choices });
  await spine.setClock(NOW);
  const owned = await spine.lead();
  let flushing = true;
  const flusher = (async () => {
    while (flushing) await spine.client.script('FLUSH');
  })();
  for (let round = 0; round < 60; round++) {
    const id = `a${round}`;
    const calls = await Promise.all([
      spine.submit('q', [aJob(id, { time: NOW })]),
      spine.submit('q', [aJob(`b${round}`)]),
      spine.submit('q', [aJob(`c${round}`, { time: NOW - 1 })]),
    ]);
    expect(calls.flat().map(({ answer }) => answer)).toEqual(['created', 'created', 'created']);
    await spine.jobs.reschedule('q', `b${round}`, NOW, false, `r${round}`);
    await spine.pop(owned);
  }
  flushing = false;
  await flusher;
  await spine.drain(owned);
  expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(180);
  const events = await spine.client.xrange(spine.bull('q', 'events'), '-', '+');
  expect(events).toHaveLength(360);
  // After the last flush each script is known again: none is refused twice.
  const before = await failedCalls(spine);
  await spine.submit('q', [aJob('z1')]);
  await spine.submit('q', [aJob('z2')]);
  await eventually(async () => expect(await failedCalls(spine)).toBeLessThanOrEqual(before + 1));
});

/** How many EVALSHA calls the server refused since its start. */
async function failedCalls(spine: Spine): Promise<number> {
  const stats = await spine.client.info('commandstats');
  return Number(stats.match(/cmdstat_evalsha:.*failed_calls=(\d+)/)?.[1] ?? 0);
}
