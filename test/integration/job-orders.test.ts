import { Worker as StockWorker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { type Run, Worker, type WorkerOptions } from '../../src/index.js';
import { RunScripts } from '../../src/redis/run-scripts.js';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';

/** A run of our worker that stops when the test lets it, as one does that has much to checkpoint. */
class SlowRun {
  readonly world: DependencyWorld;
  readonly attempts: number[] = [];
  reason: string | undefined;
  worker: Worker | undefined;
  #letGo: () => void = () => undefined;
  readonly #stops = new Promise<void>((resolve) => {
    this.#letGo = resolve;
  });

  constructor(task: { name: string }) {
    this.world = new DependencyWorld(task);
  }

  async begin(ending: 'stops' | 'completes' | 'fails' = 'stops', options: WorkerOptions = {}): Promise<void> {
    const handle = async (run: Run) => {
      this.attempts.push(run.attempt);
      if (this.attempts.length > 1) return 'again';
      run.signal.addEventListener('abort', () => {
        this.reason = (run.signal.reason as Error).message;
      });
      await this.#stops;
      if (ending === 'completes') return 'done';
      if (ending === 'fails' || !run.signal.aborted) throw new Error('of itself');
      throw run.signal.reason;
    };
    const settings = { connection: sharedRedisUrl(), prefix: this.world.prefix, ...options };
    const worker = new Worker('q', { x: handle }, settings);
    this.worker = worker;
    worker.on('error', () => undefined);
    onTestFinished(() => {
      this.#letGo();
      return worker.close(true);
    });
    await this.world.queue().add('x', {}, { jobId: 'a', attempts: 2 });
    await eventually(() => this.attempts.length === 1);
  }

  /** Its handler has heard an order. */
  async heard(): Promise<void> {
    await eventually(() => this.reason !== undefined);
  }

  end(): void {
    this.#letGo();
  }

  /** Where it stands once no worker has it. */
  async place(): Promise<string> {
    const queue = this.world.queue();
    await eventually(async () => (await queue.getJobState('a')) !== 'active');
    return (await this.world.stateOf('a')) ?? (await queue.getJobState('a'));
  }
}

const ASKED = { where: 'worker' };

test('paused and then cancelled while it still stops: cancelled, with the reason of that', async ({
  task,
}) => {
  const run = new SlowRun(task);
  const queue = run.world.queue();
  await run.begin();
  expect(await queue.pauseJob('a', { note: 'disk full' })).toEqual(ASKED);
  await run.heard();
  expect(await queue.cancel('a', { reason: 'wrong list' })).toEqual(ASKED);
  run.end();
  expect(await run.place()).toBe('unknown');
  expect(await run.world.fate('a')).toBe('cancelled: wrong list');
});

test('cancelled and then paused: cancelled, also when the worker hears of both at once', async ({ task }) => {
  const run = new SlowRun(task);
  const queue = run.world.queue();
  await run.begin();
  expect(await queue.cancel('a', { reason: 'wrong list' })).toEqual(ASKED);
  expect(await queue.pauseJob('a')).toEqual(ASKED);
  await run.heard();
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT', message: /cancelled/ });
  run.end();
  expect(await run.place()).toBe('unknown');
  expect(await run.world.fate('a')).toBe('cancelled: wrong list');
});

test('paused and then resumed while it still stops: it goes on at once, without using an attempt', async ({
  task,
}) => {
  const run = new SlowRun(task);
  const queue = run.world.queue();
  await run.begin();
  await queue.pauseJob('a');
  await run.heard();
  expect(await queue.resumeJob('a', { requestId: 'r' })).toEqual(ASKED);
  expect(await queue.resumeJob('a', { requestId: 'r' })).toEqual(ASKED);
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT' });
  run.end();
  await eventually(async () => (await queue.getJobState('a')) === 'completed');
  expect(run.attempts).toEqual([1, 1]);
});

test('paused, resumed and paused again while it still stops: paused, with the last note', async ({
  task,
}) => {
  const run = new SlowRun(task);
  const queue = run.world.queue();
  await run.begin();
  await queue.pauseJob('a', { note: 'first', requestId: 'p' });
  await run.heard();
  await queue.resumeJob('a');
  // A repeat of what was answered has no effect.
  expect(await queue.pauseJob('a', { note: 'first', requestId: 'p' })).toEqual(ASKED);
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT' });
  await queue.pauseJob('a', { note: 'second' });
  await queue.pauseJob('a', { note: 'third' });
  run.end();
  expect(await run.place()).toBe('paused');
  expect((await queue.backend.scripts.get('q', 'a')).record).toMatchObject({ note: 'third' });
  expect(await queue.resumeJob('a')).toEqual({ where: 'timers' });
  await eventually(async () => (await queue.getJobState('a')) === 'completed');
});

test.for([
  ['pause', 'completes', 'completed'],
  ['cancel', 'completes', 'completed'],
  ['pause', 'stops', 'paused'],
  ['cancel', 'stops', 'unknown'],
  ['pause', 'fails', 'paused'],
  ['cancel', 'fails', 'unknown'],
] as const)('%s and the run’s end: a handler that %s ends %s', async ([verb, ending, place], { task }) => {
  const run = new SlowRun(task);
  const queue = run.world.queue();
  await run.begin(ending);
  expect(await (verb === 'pause' ? queue.pauseJob('a') : queue.cancel('a'))).toEqual(ASKED);
  await run.heard();
  run.end();
  expect(await run.place()).toBe(place);
  expect(await queue.backend.shard.client.hget(queue.backend.toKey('a'), 'carillon:asked')).toBeNull();
});

test.for(['pause', 'cancel'] as const)(
  '%s of a run whose worker shuts down: it is not handed to another first',
  async (verb, { task }) => {
    const run = new SlowRun(task);
    const queue = run.world.queue();
    await run.begin();
    const closed = run.worker?.close();
    await run.heard();
    expect(run.reason).toMatch(/shuts down/);
    expect(await (verb === 'pause' ? queue.pauseJob('a') : queue.cancel('a'))).toEqual(ASKED);
    run.end();
    await closed;
    expect(await run.place()).toBe(verb === 'pause' ? 'paused' : 'unknown');
  },
);

/** The run as a worker has it that fetched it under this lock and said nothing of it yet. */
async function fetched(world: DependencyWorld, lock: string): Promise<RunScripts> {
  const { hostname, port } = new URL(sharedRedisUrl());
  const worker = new StockWorker('q', undefined, {
    prefix: world.prefix,
    connection: { host: hostname, port: Number(port) },
  });
  onTestFinished(() => worker.close(true));
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'a' });
  expect((await worker.getNextJob(lock))?.id).toBe('a');
  return new RunScripts(queue.backend.shard);
}

test.for([['cancel'], ['pause']] as const)(
  '%s between the fetch and the claim: the order is there when the worker claims',
  async ([verb], { task }) => {
    const run = new SlowRun(task);
    // What a lock of our worker looks like is seen in one.
    await run.begin();
    const { client } = run.world.queue().backend.shard;
    const lock = (await client.get(`${run.world.queue().backend.toKey('a')}:lock`)) ?? '';
    run.end();
    const world = new DependencyWorld({ name: `${task.name} again` });
    const queue = world.queue();
    const runs = await fetched(world, lock);
    expect(await (verb === 'pause' ? queue.pauseJob('a') : queue.cancel('a'))).toEqual(ASKED);
    const claimed = await runs.claim({ queue: 'q', runId: 'a', lock }, 5000, {});
    expect(claimed.asked).toMatchObject({ verb });
  },
);

test('cancel just after the fetch of a plain worker: it says so', async ({ task }) => {
  const world = new DependencyWorld(task);
  await fetched(world, '5f0c9b34-4c5c-4a57-8f0e-2d8d3d3e6b1a:0');
  await expect(world.queue().cancel('a')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
});

test('a worker whose processor is a file hears orders from the fetch on, as others do', async ({ task }) => {
  const world = new DependencyWorld(task);
  const file = new URL('../fixtures/blocking-worker.fixture.ts', import.meta.url);
  const worker = new Worker('q', file, {
    prefix: world.prefix,
    connection: sharedRedisUrl(),
    autorun: false,
  });
  onTestFinished(() => worker.close(true));
  await fetched(world, `${worker.id}:0`);
  expect(await world.queue().cancel('a')).toEqual(ASKED);
});

test('a pause that its attempt did not live to hear of is withdrawn while the run waits for the next', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const runs = await fetched(world, 'carillon-w:0');
  const held = { queue: 'q', runId: 'a', lock: 'carillon-w:0' };
  await runs.claim(held, 5000, {});
  expect(await queue.pauseJob('a')).toEqual(ASKED);
  await (await world.stock().getJob('a'))?.moveToDelayed(Date.now() + 3_600_000, held.lock);
  expect(await queue.resumeJob('a')).toEqual({ where: 'queue' });
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT', message: /delayed/ });
  expect(await runs.asked([held])).toEqual([undefined]);
});
