import { expect, test } from 'vitest';
import { aJob } from '../../support/builders.js';
import { ClusterLoad, LOAD_QUEUE } from '../../support/cluster-load.js';
import { eventually } from '../../support/eventually.js';
import { violationsOf } from '../../support/history-checker.js';
import { ScriptHistory } from '../../support/history-scripts.js';
import { namespaceFor } from '../../support/namespace.js';
import { startRedis } from '../../support/redis-server.js';
import { Spine } from '../../support/spine.js';
import { SchedulerProcess } from '../../support/spine-process.js';

test('a load on one scheduler without faults: nothing to find; what is planted is found', async ({
  task,
}) => {
  const server = await startRedis();
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task) });
  const scripts = await ScriptHistory.record(server.url);
  const load = await ClusterLoad.start(spine);
  const scheduler = await SchedulerProcess.start(spine);
  await eventually(() => load.started > 150, { timeout: 30_000 });
  await load.pause();
  const history = await load.settled(scripts.callsOf(spine.namespace));
  expect(violationsOf(history)).toEqual([]);
  expect(history.accepted.size).toBeGreaterThan(80);
  expect([...history.accepted.keys()].filter((id) => id.startsWith('all-')).length).toBeGreaterThan(4);
  expect(history.calls.some(({ wrote }) => wrote.length > 0)).toBe(true);

  // A job that was dispatched enters the queue again, and one comes that the load did not submit.
  const again = { time: 0, relative: true, window: 0 };
  await spine.client.del(spine.bull(LOAD_QUEUE, 'job-1'));
  await spine.submit(LOAD_QUEUE, [aJob('job-1', again), aJob('stranger', again)]);
  await eventually(() => load.started > history.started.size);
  const found = violationsOf(await load.settled(scripts.callsOf(spine.namespace)));
  expect(found).toContain('I3 enqueued twice: job-1');
  expect(found).toContain('I3 nobody asked for: stranger');
  await scheduler.node.stop();
}, 60_000);
