import type { Queue as BullQueue, Telemetry } from 'bullmq';
import { expect, test } from 'vitest';
import { answersOf, type Twins, twins } from './twins.js';

/** A telemetry that writes down what it is told. */
class Recorder {
  readonly spans: { name: string; kind: number | undefined; attributes: object }[] = [];

  readonly telemetry: Telemetry<string> = {
    tracer: {
      startSpan: (name, options) => {
        const span = { name, kind: options?.kind, attributes: {} };
        this.spans.push(span);
        const add = (more: object) => Object.assign(span.attributes, more);
        return {
          setSpanOnContext: (context) => `${context}>${name}`,
          setAttribute: (key, value) => add({ [key]: value }),
          setAttributes: add,
          addEvent: () => undefined,
          recordException: (error) => add({ error: String(error) }),
          end: () => add({ ended: true }),
        };
      },
    },
    contextManager: {
      with: (_context, run) => run(),
      active: () => 'root',
      getMetadata: (context) => `metadata of ${context}`,
      fromMetadata: (_active, metadata) => metadata,
    },
  };
}

async function recorded(task: {
  name: string;
}): Promise<{ pair: Twins; spansOf(queue: BullQueue): Recorder['spans'] }> {
  const pair = await twins(task);
  const recorders = new Map<BullQueue, Recorder>();
  for (const queue of [pair.stock, pair.ours as BullQueue]) {
    const recorder = new Recorder();
    recorders.set(queue, recorder);
    queue.opts.telemetry = recorder.telemetry;
  }
  return { pair, spansOf: (queue) => recorders.get(queue)?.spans ?? [] };
}

test('as BullMQ: the spans of add, addBulk and the rest, and the context that a job carries', async ({
  task,
}) => {
  const { pair, spansOf } = await recorded(task);
  const { stock, ours } = await answersOf(pair, async (queue) => {
    const jobs = [
      await queue.add('one', {}, { jobId: 'a', delay: 3_600_000 }),
      await queue.add('two', {}, { jobId: 'b', delay: 3_600_000, telemetry: { omitContext: true } }),
      ...(await queue.addBulk([
        { name: 'three', data: {}, opts: { jobId: 'c', delay: 3_600_000 } },
        { name: 'four', data: {}, opts: { jobId: 'd', telemetry: { metadata: 'own' } } },
        { name: 'five', data: {}, opts: { jobId: 'e', delay: 1000, telemetry: { omitContext: true } } },
      ])),
    ];
    const stored = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((id) => queue.getJob(id)));
    await queue.remove('a');
    await queue.drain(true);
    await queue.pause();
    await queue.obliterate();
    // BullMQ's bulk writes `metadata: false` where there is none.
    return [...jobs, ...stored].map((job) => {
      const { metadata, omitContext } = job?.opts.telemetry ?? {};
      return [job?.id, metadata || 'none', omitContext ?? false];
    });
  });
  expect(ours).toEqual(stock);
  expect(ours).toContainEqual(['c', 'metadata of root>addBulk q', false]);
  expect(spansOf(pair.ours)).toEqual(spansOf(pair.stock));
  expect(spansOf(pair.ours).map(({ name }) => name)).toEqual(
    expect.arrayContaining(['add q.one', 'addBulk q', 'remove q', 'drain q', 'obliterate q']),
  );
});

test('as BullMQ: a refused job ends its span with the error', async ({ task }) => {
  const { pair, spansOf } = await recorded(task);
  await answersOf(pair, (queue) => queue.add('x', {}, { jobId: '5' }));
  expect(spansOf(pair.ours)).toMatchObject([
    { name: 'add q.x', attributes: { ended: true, error: expect.any(String) } },
  ]);
  expect(spansOf(pair.stock)).toMatchObject([{ name: 'add q.x', attributes: { ended: true } }]);
});
