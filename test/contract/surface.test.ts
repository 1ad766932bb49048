import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Job as BullJob, Queue as BullQueue } from 'bullmq';
import { expect, test } from 'vitest';
import { Job, Queue } from '../../src/index.js';
import { packageRoot, resolvePackageDir } from '../../src/support/package-root.js';
import { keysWith } from '../support/own-keys.js';
import { twins } from './twins.js';

const DOC = readFileSync(join(packageRoot(), 'docs', 'bullmq-drop-in.md'), 'utf8');
const KINDS = ['passed through', 'timers too', 'refused'];

/** The rows of the table below a heading of the document. */
function tableBelow(heading: string): { method: string; here: string; note: string }[] {
  const section = DOC.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return [...section.matchAll(/^\| `(\w+)` *\| ([^|]+)\|([^|]*)\|$/gm)].map(([, method, here, note]) => ({
    method: method ?? '',
    here: here?.trim() ?? '',
    note: note?.trim() ?? '',
  }));
}

/** What the installed BullMQ declares public on a class and those it extends, up to Node's own. */
function publicMethods(top: { prototype: object }, declarations: string[]): string[] {
  const names = new Set<string>();
  let proto = top.prototype;
  for (
    ;
    proto !== Object.prototype && proto.constructor.name !== 'EventEmitter';
    proto = Object.getPrototypeOf(proto)
  ) {
    for (const name of Object.getOwnPropertyNames(proto)) names.add(name);
  }
  const folder = join(resolvePackageDir('bullmq'), 'dist', 'esm', 'classes');
  for (const file of declarations) {
    const text = readFileSync(join(folder, file), 'utf8');
    for (const [, name] of text.matchAll(/^ {4}(?:protected|private)(?: get| static| readonly)* (\w+)/gm)) {
      names.delete(name ?? '');
    }
  }
  names.delete('constructor');
  return [...names].sort();
}

test.each([
  ['Methods of a queue', BullQueue, ['queue.d.ts', 'queue-getters.d.ts', 'queue-base.d.ts']],
  ['Methods of a job', BullJob, ['job.d.ts']],
] as const)(
  'the table "%s" names each public method of the installed BullMQ, once',
  (heading, top, files) => {
    const rows = tableBelow(heading);
    expect(rows.map(({ method }) => method)).toEqual(publicMethods(top, [...files]));
    expect(rows.filter(({ here }) => !KINDS.includes(here))).toEqual([]);
    expect(rows.filter(({ here, note }) => here === 'refused' && !note.includes('use'))).toEqual([]);
  },
);

test('what is passed through is BullMQ’s own code', () => {
  const ownOf = (top: { prototype: object }) => Object.getOwnPropertyNames(top.prototype);
  const passed = (heading: string) =>
    tableBelow(heading)
      .filter(({ here }) => here === 'passed through')
      .map(({ method }) => method);
  // Overridden only to close our connection beside BullMQ's.
  const extended = ['close', 'disconnect'];
  expect(passed('Methods of a queue').filter((name) => ownOf(Queue).includes(name))).toEqual(extended);
  expect(passed('Methods of a job').filter((name) => ownOf(Job).includes(name))).toEqual([]);
});

test('what is refused says what to use instead, and writes nothing', async ({ task }) => {
  const { ours } = await twins(task);
  const job = await ours.add('x', {}, { delay: 3_600_000 });
  const { client: redis, keys } = ours.backend.shard;
  const before = await keysWith(redis, keys.namespace);
  const client = (await ours.backend.client) as Parameters<typeof job.addJob>[0];
  const refusals = [
    ours.jobScheduler,
    job.addJob(client),
    Job.create(ours, 'x', {}, { delay: 5 }),
    BullJob.create(ours, 'x', {}, { delay: 5 }),
    Job.createBulk(ours, [{ name: 'x', data: {} }]),
  ];
  for (const refused of refusals) {
    await expect(refused).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      todo: expect.stringMatching(/^Use /),
    });
  }
  expect(await keysWith(redis, keys.namespace)).toEqual(before);
  expect(await ours.count()).toBe(1);
});

test('class names are BullMQ’s, and ours extend them', async ({ task }) => {
  const { ours } = await twins(task);
  expect([Queue.name, Job.name]).toEqual(['Queue', 'Job']);
  expect(ours).toBeInstanceOf(BullQueue);
  expect(await ours.add('x', {}, { delay: 5000 })).toBeInstanceOf(BullJob);
  expect(await ours.getVersion()).toMatch(/^bullmq:6\./);
});
