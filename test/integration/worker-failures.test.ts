import { createContext, runInContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { type Handlers, Queue, type Run, UnrecoverableError, Worker } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

function open(task: { name: string }, handlers: Handlers) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const worker = new Worker('q', handlers, { connection: sharedRedisUrl(), prefix, concurrency: 10 });
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close(true));
  return { queue, prefix, worker };
}

/** Adds one job a handler, each with this many attempts, and waits until all are dead. */
async function allDead(queue: Queue, names: readonly string[], attempts: number): Promise<void> {
  for (const name of names) await queue.add(name, {}, { jobId: name, attempts });
  await eventually(async () => expect(await queue.getFailedCount()).toBe(names.length));
}

const hostile = {
  get message(): string {
    throw new Error('no message for you');
  },
};

test.each([
  ['null', null, 'the handler threw null'],
  ['undefined', undefined, 'the handler threw undefined'],
  ['a text', 'out of ink', "the handler threw 'out of ink'"],
  ['an object', { code: 5 }, 'the handler threw { code: 5 }'],
  ['an object that throws when it is read', hostile, 'the handler threw '],
  ['a long text', 'x'.repeat(100_000), "the handler threw 'xxx"],
  ['an error of another realm', runInContext("new RangeError('far away')", createContext()), 'far away'],
])('a handler that throws %s fails the attempt, uses all of them, and says so', async (_, thrown, told) => {
  const starts: number[] = [];
  const { queue, worker } = open(
    { name: `throws ${_}` },
    {
      a(run: Run) {
        starts.push(run.attempt);
        return Promise.reject(thrown);
      },
    },
  );
  const failures: Error[] = [];
  worker.on('failed', (_job, error) => failures.push(error));
  await allDead(queue, ['a'], 3);
  expect(starts).toEqual([1, 2, 3]);
  const letter = await queue.dead.get('a');
  expect(letter).toMatchObject({ reason: 'attempts', attempts: 3, error: expect.stringContaining(told) });
  expect(letter.error.length).toBeLessThan(500);
  expect(letter.errors).toHaveLength(3);
  expect(letter.errors[0]).toContain(told);
  expect(failures).toHaveLength(3);
});

test('a dead letter tells the causes of its error and the errors inside it, and is found by them', async ({
  task,
}) => {
  const port = await freePort();
  const circle = new Error('round');
  circle.cause = new Error('and round', { cause: circle });
  let deep = new Error('level 0');
  for (let level = 1; level < 50; level++) deep = new Error(`level ${level}`, { cause: deep });
  const many = Array.from({ length: 1000 }, (_, i) => new Error(`one of many ${i} ${'x'.repeat(1000)}`));
  const { queue, prefix } = open(task, {
    fetch: () => fetch(`http://127.0.0.1:${port}/`),
    several: () => Promise.reject(new AggregateError([new Error('first host'), new Error('second host')])),
    deep: () => Promise.reject(deep),
    circle: () => Promise.reject(circle),
    many: () => Promise.reject(new AggregateError(many, 'far too many')),
    values: () => Promise.reject(new Error('odd cause', { cause: { status: 503 } })),
    never: () =>
      Promise.reject(
        Object.assign(new UnrecoverableError(), { message: '', cause: new Error('no such account') }),
      ),
  });
  const names = ['fetch', 'several', 'deep', 'circle', 'many', 'values', 'never'];
  await allDead(queue, names, 1);
  const { dead } = queue;
  expect(await dead.get('fetch')).toMatchObject({
    error: 'fetch failed',
    errors: [expect.stringMatching(/\ncaused by: Error: connect ECONNREFUSED/)],
  });
  expect(await dead.get('several')).toMatchObject({
    error: 'first host',
    errors: [expect.stringMatching(/caused by: Error: first host[\s\S]*caused by: Error: second host/)],
  });
  expect((await dead.get('circle')).errors[0]).toMatch(/^Error: round[\s\S]*caused by: Error: and round/);
  expect((await dead.get('values')).errors[0]).toContain('caused by: { status: 503 }');
  expect((await dead.get('never')).error).toBe('no such account');
  for (const name of names) {
    expect((await dead.get(name)).errors.join('').length).toBeLessThan(8000);
    expect((await dead.get(name)).errors.join('').match(/caused by/g)?.length).toBeLessThanOrEqual(10);
  }
  const found = async (text: string) => (await dead.list({ text })).map(({ id }) => id);
  expect(await found('econnrefused')).toEqual(['fetch']);
  expect(await found('SECOND HOST')).toEqual(['several']);
  expect(await new InProcessCli(prefix).text('dead', 'show', 'q', 'fetch')).toContain('ECONNREFUSED');
});

test('the same error in each attempt does not grow, and whoever judges it gets the handler’s own', async ({
  task,
}) => {
  const shared = new Error('no answer', { cause: new Error('line cut') });
  const { queue, worker } = open(task, { a: () => Promise.reject(shared) });
  const failures: unknown[] = [];
  worker.on('failed', (_job, error) => failures.push(error));
  await allDead(queue, ['a'], 3);
  const { errors } = await queue.dead.get('a');
  expect(errors).toHaveLength(3);
  expect(new Set(errors).size).toBe(1);
  expect(errors[0]?.match(/caused by/g)).toHaveLength(1);
  expect(failures).toEqual([shared, shared, shared]);
  expect(failures[0]).toBe(shared);
});
