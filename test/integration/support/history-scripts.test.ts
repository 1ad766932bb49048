import { expect, test } from 'vitest';
import { bucketOf } from '../../../src/domain/buckets.js';
import { jobs } from '../../support/builders.js';
import { eventually } from '../../support/eventually.js';
import { violationsOf } from '../../support/history-checker.js';
import { argumentsOf, ScriptHistory } from '../../support/history-scripts.js';
import { namespaceFor } from '../../support/namespace.js';
import { startRedis } from '../../support/redis-server.js';
import { Spine } from '../../support/spine.js';

const ids = Array.from({ length: 20 }, (_, i) => `job-${i}`);

async function setup(task: { name: string }, fence: 'on' | 'off') {
  const server = await startRedis();
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task), choices: { fence } });
  const scripts = await ScriptHistory.record(server.url);
  const submit = () =>
    spine.submit(
      'q',
      jobs(20, 'job-', () => ({ time: 30, relative: true })),
    );
  /** Until the recorder has read what was done so far. */
  const read = async () => {
    await spine.leader.refreshHeads([{ first: 9, last: 9, servedFrom: 0, fence: '9|end|9|end' }]);
    const calls = () => scripts.callsOf(spine.namespace);
    await eventually(() => calls().at(-1)?.claims[0]?.fence === '9|end|9|end');
    return calls().slice(0, -1);
  };
  /** All that is due. */
  const drain = async (owned: Awaited<ReturnType<Spine['lead']>>) => {
    let left = ids.length;
    await eventually(async () => {
      left -= (await spine.pop(owned)).popped;
      return left === 0;
    });
  };
  return { spine, submit, read, drain };
}

test('records who claimed what by which fence, what it raised and what it changed', async ({ task }) => {
  const { spine, submit, read, drain } = await setup(task, 'on');
  const old = await spine.lead(9, 'ann');
  await submit();
  await drain(old);
  const buckets = [...new Set(ids.map((id) => bucketOf(`q:${id}`)))].sort((a, b) => a - b);
  const calls = await read();
  // Not the first one: that found no such script on the server, and was sent again as text.
  const takeOver = calls.findLast(({ script }) => script === 'take-over');
  expect(takeOver?.raised).toHaveLength(256);
  expect(takeOver?.claims).toEqual([{ first: 0, last: 255, fence: '1|e|9|ann' }]);
  const wrote = calls.filter(({ script }) => script === 'pop-due').flatMap((call) => call.wrote);
  expect([...new Set(wrote)].sort((a, b) => a - b)).toEqual(buckets);
  expect(new Set(calls.map(({ client }) => client)).size).toBe(1);
});

test('a stale leader’s script is seen, and that it changed nothing', async ({ task }) => {
  const { spine, submit, read } = await setup(task, 'on');
  const stale = await spine.lead(9, 'ann');
  await spine.lead(10, 'bob');
  await submit();
  expect((await spine.pop(stale)).fenced).toHaveLength(256);
  const calls = await read();
  expect(calls.at(-1)).toMatchObject({ script: 'pop-due', wrote: [], raised: [] });
  expect(fenceFindings(calls)).toEqual([]);
});

test('without the fence check a stale leader’s writes are seen', async ({ task }) => {
  const { spine, submit, read, drain } = await setup(task, 'off');
  const stale = await spine.lead(9, 'ann');
  await spine.lead(10, 'bob');
  await submit();
  await drain(stale);
  const found = fenceFindings(await read());
  expect(found.length).toBeGreaterThan(0);
  for (const line of found)
    expect(line).toMatch(/^I5 pop-due of a stale leader wrote bucket \d+: 1\|e\|9\|ann after/);
});

test('the words of a MONITOR line, whatever bytes they hold', () => {
  const line = String.raw`+1700000000.123456 [0 127.0.0.1:5] "SET" "a\"b\\" "\x00\xff\n\r\t\a\b" "" "plain"`;
  expect(argumentsOf(line)).toEqual(['SET', 'a"b\\', '\x00\xff\n\r\t\x07\b', '', 'plain']);
});

function fenceFindings(calls: Awaited<ReturnType<Awaited<ReturnType<typeof setup>>['read']>>): string[] {
  const none = new Map();
  return violationsOf({
    accepted: none,
    possible: none,
    stored: none,
    dispatched: none,
    started: none,
    calls,
  });
}
