import { expect, test } from 'vitest';
import { jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { History } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startMover } from '../support/spine-process.js';

const EACH = 2000;
const KILLS = 4;
/** A script takes no longer; ms, on a machine that others use as well. */
const SCRIPT = 100;

async function pending(spine: Spine): Promise<number> {
  return Number(await spine.client.hget(spine.keys.queues, 'q:scheduled'));
}

/** The ids that the history tells of as expired, each as often as it does. */
async function expired(spine: Spine): Promise<string[]> {
  const entries = await spine.client.xrange(spine.keys.history, '-', '+');
  return entries
    .map(([, fields]) => fields.join(' '))
    .filter((text) => text.endsWith('what skipped reason expired'))
    .map((text) => / job q:(\S+) /.exec(text)?.[1] ?? text);
}

test.each(['on', 'off'] as const)(
  'I1 I3 movers killed -9 while deadlines pass, fence check %s: each job either enters the queue or expires, once',
  async (fence) => {
    const server = await startRedis();
    const namespace = namespaceFor({ name: `deadlines ${fence}` });
    const spine = await Spine.open({ url: server.url, namespace, choices: { fence } });
    await History.keep(spine, 'q');
    const dueAt = (await spine.now()) + 500;
    const until = (deadline: number) => ({
      time: dueAt,
      opts: JSON.stringify({ attempts: 0, deadline }),
      deadline: true,
    });
    await spine.submit(
      'q',
      jobs(EACH, 'past-', () => until(dueAt + 1)),
    );
    await spine.submit(
      'q',
      jobs(EACH, 'far-', () => until(dueAt + 3_600_000)),
    );
    await spine.submit(
      'q',
      jobs(EACH, 'none-', () => ({ time: dueAt })),
    );
    // These pass one after the other while the movers work.
    await spine.submit(
      'q',
      jobs(EACH, 'soon-', (i) => until(dueAt + 100 + i * 3)),
    );
    await eventually(async () => (await spine.now()) > dueAt + 50);

    let token = 1;
    const proxy = await FaultProxy.start({ port: server.port });
    proxy.delay(4);
    const start = () => startMover(spine, proxy.url, { fence }, fence === 'on' ? 1 : token++);
    const movers = [await start(), await start()];
    for (let kills = 0; (await pending(spine)) > 0; kills++) {
      const before = await pending(spine);
      await eventually(async () => (await pending(spine)) < before, { every: 1, timeout: 60_000 });
      if (kills === KILLS) await eventually(async () => (await pending(spine)) === 0, { timeout: 120_000 });
      await movers.shift()?.kill9();
      movers.push(await start());
    }
    for (const mover of movers) await mover.kill9();

    const { waiting, added } = await History.read(spine, 'q');
    const ended = await expired(spine);
    const fates = new Map<string, number>();
    for (const [id, times] of waiting) fates.set(id, Math.max(times.length, added.get(id) ?? 0));
    for (const id of ended) fates.set(id, (fates.get(id) ?? 0) + 1);
    expect(fates.size).toBe(4 * EACH);
    expect([...fates].filter(([, count]) => count !== 1)).toEqual([]);
    expect(ended.filter((id) => id.startsWith('past-'))).toHaveLength(EACH);
    expect(ended.filter((id) => /^(far|none)-/.test(id))).toEqual([]);
    // None entered after its deadline, but for the length of the script that judged it.
    for (const [id, times] of waiting) {
      const nth = /^soon-(\d+)$/.exec(id)?.[1];
      if (nth !== undefined) expect(times[0]).toBeLessThan(dueAt + 100 + Number(nth) * 3 + SCRIPT);
    }
    await expectHealthy(spine, 'leader');
  },
  300_000,
);
