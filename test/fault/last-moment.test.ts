import { describe, expect, test } from 'vitest';
import { isCarillonError } from '../../src/domain/errors.js';
import { aJob } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { History } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startMover } from '../support/spine-process.js';

const LONG = process.env.CARILLON_LONG === '1';
const COUNT = LONG ? 6000 : 900;
/** Jobs due within a quarter of a second. */
const WAVE = 150;

/** What must have become of a job, by the answer that its last change got. */
interface Fate {
  /** How often it may have entered its queue: once, or never. */
  runs: 0 | 1;
  /** ms; it must not enter before. */
  notBefore: number;
}

/** NOT_FOUND tells that the job had fired; every other failure is one of the test. */
async function wasThere<T>(change: Promise<T>): Promise<T | undefined> {
  return change.catch((error: unknown) => {
    if (isCarillonError(error, 'NOT_FOUND')) return undefined;
    throw error;
  });
}

type Change = (spine: Spine, id: string, dueAt: number) => Promise<Fate>;

const CANCEL: Change = async (spine, id, dueAt) => {
  const cancelled = await wasThere(spine.jobs.cancel('q', id, '', `c-${id}`));
  return { runs: cancelled ? 0 : 1, notBefore: dueAt };
};

/** Changes that meet a job in its last moments. */
const CHANGES: Change[] = [
  async (_spine, _id, dueAt) => ({ runs: 1, notBefore: dueAt }),
  async (spine, id, dueAt) => {
    const moved = await wasThere(spine.jobs.reschedule('q', id, dueAt + 400, false, `r-${id}`));
    return { runs: 1, notBefore: moved ? dueAt + 400 : dueAt };
  },
  CANCEL,
  async (spine, id, dueAt) => {
    const paused = await wasThere(spine.jobs.pause('q', id, '', `p-${id}`));
    if (paused) await spine.jobs.resume('q', id, `u-${id}`);
    return { runs: 1, notBefore: dueAt };
  },
  async (spine, id, dueAt) => {
    const promoted = await wasThere(spine.jobs.promote('q', id, `o-${id}`));
    return { runs: 1, notBefore: promoted ? 0 : dueAt };
  },
  async (spine, id, dueAt) => {
    const later = aJob(id, { time: dueAt + 300, replace: true });
    const [result] = await spine.submit('q', [later], { requestId: `s-${id}` });
    expect(['replaced', 'fired', 'existing']).toContain(result?.answer);
    return { runs: 1, notBefore: result?.answer === 'replaced' ? dueAt + 300 : dueAt };
  },
  async (spine, id, dueAt) => {
    const [result] = await spine.submit('q', [aJob(id, { time: dueAt })], { requestId: 'r' });
    expect(['created', 'existing', 'fired']).toContain(result?.answer);
    return { runs: 1, notBefore: dueAt };
  },
];

describe.each(['on', 'off'] as const)('I1 I2 I3 changes at the last moment, fence check %s', (fence) => {
  test(`${COUNT} jobs, each changed within 20 ms of its time, over a line that drops replies, by two movers: what the answers say`, async ({
    task,
  }) => {
    const server = await startRedis({ appendfsync: 'no' });
    const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task), choices: { fence } });
    await History.keep(spine, 'q');
    const proxy = await FaultProxy.start({ port: server.port });
    const through = await Promise.all(
      Array.from({ length: 4 }, () => Spine.open({ url: proxy.url, namespace: spine.namespace })),
    );
    for (const token of [1, fence === 'on' ? 1 : 2]) await startMover(spine, server.url, { fence }, token);
    const dropping = setInterval(() => proxy.dropReplies(1, 'EVALSHA'), 250);

    const fates = new Map<string, Fate>();
    // ms before its time that a change is sent: as long as a call takes here, found by those in time and too late.
    let lead = 0;
    for (let from = 0; from < COUNT; from += WAVE) {
      const now = await spine.now();
      const offset = now - performance.now();
      const start = now + 200 + Math.ceil(lead);
      const dueAt = (i: number) => start + Math.floor((i - from) * 1.7);
      const wave = Array.from({ length: WAVE }, (_, k) => from + k);
      await spine.submit(
        'q',
        wave.map((i) => aJob(`a${i}`, { time: dueAt(i) })),
      );
      const change = async (i: number) => {
        const act = CHANGES[i % CHANGES.length] as Change;
        const fate = await act(through[i % through.length] as Spine, `a${i}`, dueAt(i));
        fates.set(`a${i}`, fate);
        const late = performance.now() + offset - dueAt(i);
        if (act === CANCEL) lead = fate.runs === 1 ? lead + Math.max(4, late / 10) : 0.9 * lead;
      };
      const changes: Promise<void>[] = [];
      for (const i of wave) {
        const at = dueAt(i) - lead - 20 + Math.random() * 40 - offset;
        await eventually(() => performance.now() >= at, { every: 1, timeout: 60_000 });
        changes.push(change(i));
      }
      await Promise.all(changes);
    }
    clearInterval(dropping);
    await eventually(async () => Number(await spine.client.hget(spine.keys.queues, 'q:scheduled')) === 0, {
      timeout: 20_000,
    });

    const history = await History.read(spine, 'q');
    const wrong = [...fates].filter(([id, { runs, notBefore }]) => {
      const times = history.waiting.get(id) ?? [];
      return times.length !== runs || times.some((time) => time < notBefore);
    });
    expect(wrong).toEqual([]);
    expect(fates.size).toBe(COUNT);
    // Some changes came in time and some too late, or nothing was shown.
    const cancelled = [...fates].filter(([id]) => Number(id.slice(1)) % CHANGES.length === 2);
    expect(new Set(cancelled.map(([, { runs }]) => runs))).toEqual(new Set([0, 1]));
    expect([...history.added].filter(([, count]) => count > 1)).toEqual([]);
    await expectHealthy(spine, 'leader');
  }, 120_000);
});
