import { describe, expect, test } from 'vitest';
import type { MissedPolicy, OverlapPolicy } from '../../src/domain/schedule.js';
import { HandWorker, runIdOf } from '../support/hand-worker.js';
import { ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';

const MISSED: readonly MissedPolicy[] = ['skip', 'latest', 'all'];
const OVERLAP: readonly OverlapPolicy[] = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allow'];

/**
 * The rows of each schedule in the order in which they are written. `first` runs when the scheduler goes away, and until
 * after `tick`; `passed` is the span that does not run, `caught` what is caught up, `after` comes when all is quiet.
 */
const TABLE: Record<MissedPolicy, Record<OverlapPolicy, string>> = {
  skip: {
    skip: 'first passed -tick after',
    bufferOne: 'first passed tick after',
    bufferAll: 'first passed tick after',
    cancelOther: 'first passed tick after',
    allow: 'first passed tick after',
  },
  latest: {
    skip: 'first passed -tick caught after',
    bufferOne: 'first passed caught tick after',
    bufferAll: 'first passed caught tick after',
    cancelOther: 'first passed caught tick after',
    allow: 'first passed caught tick after',
  },
  all: {
    skip: 'first passed -tick caught after',
    bufferOne: 'first passed caught tick after',
    bufferAll: 'first passed caught tick after',
    cancelOther: 'first passed caught tick after',
    allow: 'first passed caught tick after',
  },
};

interface Outage {
  cron: string;
  first: string;
  back: string;
  /** The first tick after the return; {@link first} ends a minute later. */
  tick: string;
  after: string;
  /** The span of ticks that does not run, with its reason, and the ticks that are caught up. */
  of: Record<MissedPolicy, { passed?: [reason: string, from: string, to: string]; caught: string[] }>;
}

const FORTY_MINUTES: Outage = {
  cron: '*/5 * * * *',
  first: '2026-01-15T12:00:00Z',
  back: '2026-01-15T12:41:15Z',
  tick: '2026-01-15T12:45:00Z',
  after: '2026-01-15T12:50:00Z',
  of: {
    skip: { passed: ['missed', '2026-01-15T12:05:00Z', '2026-01-15T12:40:00Z'], caught: [] },
    latest: {
      passed: ['missed', '2026-01-15T12:05:00Z', '2026-01-15T12:35:00Z'],
      caught: ['2026-01-15T12:40:00Z'],
    },
    all: { caught: every(5, '2026-01-15T12:05:00Z', '2026-01-15T12:40:00Z') },
  },
};

const THREE_DAYS: Outage = {
  cron: '0 * * * *',
  first: '2026-01-15T12:00:00Z',
  back: '2026-01-18T12:41:15Z',
  tick: '2026-01-18T13:00:00Z',
  after: '2026-01-18T14:00:00Z',
  of: {
    skip: { passed: ['missed', '2026-01-15T13:00:00Z', '2026-01-18T12:00:00Z'], caught: [] },
    latest: {
      passed: ['missed', '2026-01-15T13:00:00Z', '2026-01-18T11:00:00Z'],
      caught: ['2026-01-18T12:00:00Z'],
    },
    // Of what is older than a day nothing runs.
    all: {
      passed: ['too old', '2026-01-15T13:00:00Z', '2026-01-17T12:00:00Z'],
      caught: every(60, '2026-01-17T13:00:00Z', '2026-01-18T12:00:00Z'),
    },
  },
};

function every(minutes: number, from: string, to: string): string[] {
  const times: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += minutes * 60_000) {
    times.push(new Date(at).toISOString().replace('.000Z', 'Z'));
  }
  return times;
}

/** The ledger that the table tells of one schedule. */
function expectedRows(outage: Outage, missed: MissedPolicy, overlap: OverlapPolicy): string[] {
  const { passed, caught } = outage.of[missed];
  const iso = (time: string) => new Date(time).toISOString();
  const rows: Record<string, string[]> = {
    first: [`dispatched ${outage.first}`],
    passed: passed
      ? [`skipped ${passed[2]} ${passed[0]}: every tick from ${iso(passed[1])} to ${iso(passed[2])}`]
      : [],
    caught: caught.map((time) => `caught up ${time}`),
    tick: [`dispatched ${outage.tick}`],
    '-tick': [`skipped ${outage.tick} overlap`],
    after: [`dispatched ${outage.after}`],
  };
  return TABLE[missed][overlap].split(' ').flatMap((word) => rows[word] as string[]);
}

describe.each([
  ['40 minutes', FORTY_MINUTES, 'on'],
  ['40 minutes', FORTY_MINUTES, 'off'],
  ['3 days', THREE_DAYS, 'on'],
] as const)('the scheduler away for %s', (span, outage, fence) => {
  test(`fence check ${fence}: every policy of missed and overlap, runs and ledger exact`, {
    timeout: 120_000,
  }, async () => {
    const world = await ScheduleWorld.at(
      '2026-01-15T11:59:30Z',
      { name: `away ${span} ${fence}` },
      { fence },
    );
    const worker = await HandWorker.start(world, { worker: { concurrency: 100 } });
    const ids = MISSED.flatMap((missed) => OVERLAP.map((overlap) => ({ missed, overlap })));
    const name = ({ missed, overlap }: (typeof ids)[number]) => `${missed}-${overlap}`;
    for (const policies of ids) {
      await world.schedules.upsert(name(policies), { cron: outage.cron, ...policies });
      worker.hold(name(policies), outage.first);
    }
    const before = await world.startScheduler();
    await world.passTo(outage.first);
    await worker.idle();
    expect(worker.running).toHaveLength(ids.length);
    await before.stop();

    await world.setClock(outage.back);
    await world.startScheduler();
    await world.settle();
    await world.lookUntil(Date.parse(outage.tick) - 60_000, () => worker.idle());
    await world.passTo(outage.tick);
    await worker.idle();
    await world.passTo(Date.parse(outage.tick) + 60_000);
    for (const policies of ids) await worker.end(runIdOf(name(policies), outage.first));
    await world.lookUntil(Date.parse(outage.after) - 60_000, () => worker.idle());
    await world.passTo(outage.after);
    await worker.idle();

    for (const policies of ids) {
      const id = name(policies);
      const rows = expectedRows(outage, policies.missed, policies.overlap);
      expect([id, await world.ledger(id)]).toEqual([id, rows]);
      const ran = rows.filter((row) => !row.startsWith('skipped')).map((row) => row.split(' ').at(-1));
      const started = worker.starts.filter((runId) => runId.startsWith(`${id}@`));
      expect([id, started]).toEqual([id, ran.map((time) => runIdOf(id, time as string))]);
    }
    // The clock leapt away from the last heartbeat.
    await expectHealthy(world.spine, 'leader');
  });
});

test('all runs in order, one at a time, never dropped by overlap skip: a worker that could run ten at once', async ({
  task,
}) => {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  const worker = await HandWorker.start(world, { holdAll: true });
  for (const id of ['skip', 'allow'] as const) {
    await world.schedules.upsert(id, { cron: '*/5 * * * *', missed: 'all', overlap: id });
  }
  await world.setClock('2026-01-15T12:41:15Z');
  await world.startScheduler();
  await world.settle();
  const ticks = every(5, '2026-01-15T12:00:00Z', '2026-01-15T12:40:00Z');
  for (let done = 0; done < ticks.length; done++) {
    await worker.started((done + 1) * 2);
    // Nothing more comes while a run is under way.
    await world.look();
    await worker.idle();
    const time = ticks[done] as string;
    expect(worker.running.toSorted()).toEqual([runIdOf('allow', time), runIdOf('skip', time)]);
    for (const runId of worker.running) await worker.end(runId);
    await world.look();
  }
  expect(worker.most).toBe(2);
  for (const id of ['skip', 'allow']) {
    expect(worker.starts.filter((runId) => runId.startsWith(id))).toEqual(
      ticks.map((time) => runIdOf(id, time)),
    );
    expect(await world.ledger(id)).toEqual(ticks.map((time) => `caught up ${time}`));
  }
});
