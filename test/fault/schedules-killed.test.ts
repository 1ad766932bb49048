import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/client/queue.js';
import { bucketOf } from '../../src/domain/buckets.js';
import type { MissedPolicy, OverlapPolicy } from '../../src/domain/schedule.js';
import type { LedgerRow } from '../../src/redis/schedule-scripts.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { History } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { SchedulerProcess } from '../support/spine-process.js';
import { CountingWorker } from '../support/spine-worker.js';

const LONG = process.env.CARILLON_LONG === '1';
/** A ledger keeps 255 rows: some two minutes. */
const KILLS = LONG ? 20 : 5;
const EVERY = 500;
const MISSED: readonly MissedPolicy[] = ['skip', 'latest', 'all'];
const OVERLAP: readonly OverlapPolicy[] = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allow'];

/** A schedule of every pair of policies on a Redis of its own, and a stock worker. */
async function setup(task: { name: string }, fence: 'on' | 'off') {
  const server = await startRedis();
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task), choices: { fence } });
  await History.keep(spine, 'q');
  const { namespace, prefix } = spine;
  const queue = new Queue('q', { connection: server.url, namespace, prefix });
  onTestFinished(() => queue.close());
  const { schedules } = queue;
  const ids: string[] = [];
  for (const missed of MISSED) {
    for (const overlap of OVERLAP) {
      const id = `${missed}-${overlap}`;
      // A short grace, so that a kill makes some ticks missed and some late.
      const policies = { missed, overlap, grace: '400ms', keepRuns: 255, maxOpenRuns: 64 } as const;
      await schedules.upsert(id, { every: EVERY, anchor: 0, ...policies });
      ids.push(id);
    }
  }
  return { server, spine, schedules, ids };
}

/** Ids of enabled schedules that neither have a pending tick nor stand on plan; each is looked at in one go. */
async function silent(spine: Spine, ids: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const id of ids) {
    const bucket = bucketOf(`q:${id}`);
    const read = await spine.client
      .multi()
      .zscore(spine.keys.due(bucket), `q:${id}`)
      .zscore(spine.keys.plan(bucket), `q:${id}`)
      .exec();
    if (read?.every(([, score]) => score === null)) found.push(id);
  }
  return found;
}

function isRun({ what }: LedgerRow): boolean {
  return what === 'dispatched' || what === 'caught up';
}

/** The ticks that a row stands for: one, or every one of its span. */
function ticksOf({ scheduledFor, reason }: LedgerRow): number[] {
  const from = /from (\S+) to /.exec(reason)?.[1];
  const first = from === undefined ? scheduledFor : Date.parse(from);
  return Array.from({ length: (scheduledFor - first) / EVERY + 1 }, (_, i) => first + i * EVERY);
}

describe.each(['on', 'off'] as const)(
  'B14 I3 schedulers killed -9 between pop, successor and plan, fence check %s',
  (fence) => {
    test(`${KILLS} kills: no tick lost or doubled, none silent, each with its one row`, {
      timeout: LONG ? 900_000 : 120_000,
    }, async ({ task }) => {
      const { server, spine, schedules, ids } = await setup(task, fence);
      const worker = await CountingWorker.start(spine, 'q');
      // A slow line, so that most kills meet a call on its way.
      const proxy = await FaultProxy.start({ port: server.port });
      proxy.delay(15);
      let looking = true;
      const everSilent = new Set<string>();
      const looks = (async () => {
        while (looking) for (const id of await silent(spine, ids)) everSilent.add(id);
      })();
      onTestFinished(() => {
        looking = false;
      });
      for (let kill = 0; kill < KILLS; kill++) {
        const scheduler = await SchedulerProcess.start(spine, {
          redis: proxy.url,
          takeOver: true,
          scripts: { fence },
        });
        const before = worker.starts.size;
        await eventually(() => worker.starts.size >= before + ids.length, { timeout: 30_000, every: 1 });
        const moment = performance.now() + Math.random() * EVERY;
        await eventually(() => performance.now() >= moment, { every: 1 });
        await scheduler.node.kill9();
      }
      const last = await SchedulerProcess.start(spine, { takeOver: true, scripts: { fence } });
      const enough = worker.starts.size + 3 * ids.length;
      await eventually(() => worker.starts.size >= enough, { timeout: 30_000 });
      looking = false;
      await looks;
      expect([...everSilent]).toEqual([]);
      for (const id of ids) await schedules.get(id).pause();

      const history = await History.read(spine, 'q');
      expect(worker.doubled).toEqual([]);
      for (const times of history.waiting.values()) expect(times).toHaveLength(1);
      for (const id of ids) {
        const rows = await schedules.get(id).runs();
        const info = await schedules.get(id).describe();
        const waits = (info?.waiting ?? []).map(({ scheduledFor }) => scheduledFor);
        const started = new Set(rows.filter(isRun).map(({ scheduledFor }) => scheduledFor));
        // A run that gave way to a newer tick after it had been in the queue has two rows.
        const fates = rows.filter((row) => row.what !== 'cancelled' || !started.has(row.scheduledFor));
        const ticks = [...fates.flatMap(ticksOf), ...waits].sort((a, b) => a - b);
        const [from = 0, to = 0] = [ticks[0], ticks.at(-1)];
        const grid = Array.from({ length: (to - from) / EVERY + 1 }, (_, i) => from + i * EVERY);
        expect([id, ticks]).toEqual([id, grid]);
        expect([id, to]).toEqual([id, info?.last]);
        for (const row of rows.filter(isRun)) expect(history.waiting.get(row.runId ?? '')).toHaveLength(1);
        const runs = [...history.waiting.keys()].filter((runId) => runId.startsWith(`${id}@`));
        expect(runs).toHaveLength(started.size);
      }
      await last.node.kill9();
      await expectHealthy(spine, 'leader');
    });
  },
);
