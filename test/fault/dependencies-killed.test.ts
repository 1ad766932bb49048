import { expect, test } from 'vitest';
import { type GraphJob, Queue } from '../../src/index.js';
import { type SeededRandom, seededRandom } from '../property/seeded-random.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { History } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { fixture, SchedulerProcess } from '../support/spine-process.js';

const LONG = process.env.CARILLON_LONG === '1';
const NODES = LONG ? 1000 : 150;
const QUEUES = ['north', 'east', 'south', 'west'];
/** So many processes are killed on the way. */
const KILLS = LONG ? 40 : 6;

/** Each node waits for up to three earlier ones of any queue; some are due later. */
function randomGraph({ below: pick }: SeededRandom): GraphJob[] {
  const nodes: GraphJob[] = [];
  for (let i = 0; i < NODES; i++) {
    const queue = QUEUES[i % QUEUES.length] as string;
    const earlier = new Set<number>();
    if (i >= 8) for (let k = pick(4); k > 0; k--) earlier.add(Math.max(0, i - 1 - pick(40)));
    const after = [...earlier].map((k) => ({ queue: QUEUES[k % QUEUES.length] as string, jobId: `n${k}` }));
    nodes.push({
      queue,
      name: 'node',
      data: { parents: after.map((parent) => `${parent.queue}:${parent.jobId}`), takes: pick(60) },
      opts: {
        jobId: `n${i}`,
        after,
        ...(pick(5) === 0 ? { delay: pick(2000) } : {}),
        ...(pick(2) === 0 ? { removeOnComplete: true } : {}),
        ...(pick(3) === 0 ? { priority: 1 + pick(5) } : {}),
      },
    });
  }
  return nodes;
}

test(`I1 I3 a graph of ${NODES} jobs over 4 queues, workers and schedulers killed -9: each once, none before its parents`, async () => {
  const server = await startRedis();
  const namespace = namespaceFor({ name: 'dependencies killed' });
  const spine = await Spine.open({ url: server.url, namespace });
  for (const queue of QUEUES) await History.keep(spine, queue);
  const seed = Number(process.env.CARILLON_SEED ?? 7);
  const random = seededRandom(seed);
  const log = `${namespace}-log`;
  const settings = { url: server.url, prefix: spine.prefix, queues: QUEUES, log };
  const startWorker = async (): Promise<NodeProcess> => {
    const worker = spawnNode(fixture('dependency-worker'), [JSON.stringify(settings)]);
    await worker.waitForLine('working', 60_000);
    return worker;
  };
  const startScheduler = async () =>
    (await SchedulerProcess.start(spine, { ttl: 5000, takeOver: true })).node;
  const workers = await Promise.all([startWorker(), startWorker()]);
  const schedulers = await Promise.all([startScheduler(), startScheduler()]);

  const queue = new Queue('north', { connection: server.url, prefix: spine.prefix, namespace });
  onCleanup('queue', () => queue.close());
  const nodes = randomGraph(random);
  // Any order will do.
  const added = await queue.addGraph([...nodes].reverse());
  expect(added.filter(({ answer }) => answer !== 'created')).toEqual([]);

  const done = () => spine.client.scard(`${log}:done`);
  for (let kills = 0; kills < KILLS; kills++) {
    const wanted = Math.min(NODES - 1, Math.ceil(((kills + 1) * NODES) / (KILLS + 1)));
    await eventually(async () => (await done()) >= wanted, { timeout: 120_000 });
    const [list, start] = random.below(2) === 0 ? [workers, startWorker] : [schedulers, startScheduler];
    await list.shift()?.kill9();
    list.push(await start());
  }
  await eventually(async () => (await done()) === NODES, { timeout: 120_000 });

  expect(await spine.client.lrange(`${log}:early`, 0, -1)).toEqual([]);
  const endedAt = new Map<string, number>();
  const enteredAt = new Map<string, number>();
  for (const name of QUEUES) {
    const { added: entered, waiting } = await History.read(spine, name);
    // A run that stalled waits again; it is added once.
    expect([...entered].filter(([, count]) => count !== 1)).toEqual([]);
    for (const [id, times] of waiting) enteredAt.set(`${name}:${id}`, times[0] as number);
    for (const [streamId, fields] of await spine.client.xrange(spine.bull(name, 'events'), '-', '+')) {
      if (fields[1] === 'completed') endedAt.set(`${name}:${fields[3]}`, Number(streamId.split('-')[0]));
    }
  }
  expect(enteredAt.size).toBe(NODES);
  const early = nodes.flatMap(({ queue: name, data, opts }) =>
    (data as { parents: string[] }).parents.filter(
      (parent) =>
        (enteredAt.get(`${name}:${opts?.jobId}`) ?? 0) < (endedAt.get(parent) ?? Number.POSITIVE_INFINITY),
    ),
  );
  expect(early).toEqual([]);
  await eventually(async () => (await spine.client.scard(`${spine.keys.latch}:dependencies`)) === 0);
  await expectHealthy(spine, 'leader');
  for (const node of [...workers, ...schedulers]) await node.kill9();
}, 600_000);
