import { Queue as BullQueue } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Admin } from '../../src/client/admin.js';
import { aJob } from '../support/builders.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { InProcessCli } from './cli-in-process.js';

async function world(task: { name: string }) {
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
  const { namespace, prefix } = spine;
  const admin = new Admin({ connection: spine.client, namespace, prefix });
  const isPaused = async (queue: string) =>
    (await spine.client.hexists(spine.bull(queue, 'meta'), 'paused')) === 1;
  return { spine, admin, isPaused };
}

const STEPS = ['hold', 'release', 'pause', 'resume', 'pauseAll', 'resumeAll'] as const;
type Step = (typeof STEPS)[number];

/** Every order in which each of the three begins before it ends. */
function orders(left: readonly Step[] = STEPS): Step[][] {
  if (left.length === 0) return [[]];
  const ends: Partial<Record<Step, Step>> = { release: 'hold', resume: 'pause', resumeAll: 'pauseAll' };
  return left
    .filter((step) => !left.includes(ends[step] as Step))
    .flatMap((step) => orders(left.filter((other) => other !== step)).map((rest) => [step, ...rest]));
}

describe('a hold, a pause and a pause of everything', () => {
  test('end only by their own verbs, in any order, and nothing stays paused after them', {
    timeout: 60_000,
  }, async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    await spine.submit('q', [aJob('later')]);
    await admin.gates.set('q', { rate: 5 });
    const { gates } = admin;
    const limits = await gates.get('q');
    expect(orders()).toHaveLength(90);
    for (const order of orders()) {
      const on = { hold: false, paused: false, all: false };
      const steps: Record<Step, () => Promise<unknown>> = {
        hold: () => gates.hold('q', 'provider down'),
        release: () => gates.release('q'),
        pause: () => admin.pauseQueue('q', 'deploy'),
        resume: () => admin.resumeQueue('q'),
        pauseAll: () => admin.pauseAll('moving'),
        resumeAll: () => admin.resumeAll(),
      };
      // A resume is refused while everything is paused: whoever was told so comes again.
      for (const step of [...order, 'resume' as const]) {
        if (step === 'resume' && on.all) {
          await expect(steps.resume()).rejects.toMatchObject({ code: 'CONFLICT' });
        } else await steps[step]();
        on.hold = step === 'hold' || (on.hold && step !== 'release');
        on.paused = step === 'pause' || (on.paused && (step !== 'resume' || on.all));
        on.all = step === 'pauseAll' || (on.all && step !== 'resumeAll');
        const { hold, note, paused, pauseNote } = (await gates.get('q')) ?? {};
        expect(
          { hold, note, paused, pauseNote, workers: await isPaused('q') },
          `${order} at ${step}`,
        ).toEqual({
          hold: on.hold || undefined,
          note: on.hold ? 'provider down' : undefined,
          paused: on.paused || undefined,
          pauseNote: on.paused ? 'deploy' : undefined,
          workers: on.paused || on.all,
        });
        expect((await gates.everything())?.pauseNote).toBe(on.all ? 'moving' : undefined);
      }
      expect(await gates.get('q'), `${order}`).toEqual(limits);
    }
  });

  test('limits that are set or cleared leave a pause alone', async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    await spine.submit('q', [aJob('later')]);
    await admin.pauseQueue('q', 'deploy');
    await admin.gates.set('q', { rate: 5 });
    await admin.gates.clear('q');
    expect(await admin.gates.get('q')).toMatchObject({ paused: true, pauseNote: 'deploy' });
    await admin.resumeQueue('q');
    expect([await admin.gates.get('q'), await isPaused('q')]).toEqual([undefined, false]);
  });

  test('of everything that broke off half-way is resumed whole, and can be made again', async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    for (const queue of ['a', 'b', 'c']) await spine.submit(queue, [aJob('later')]);
    await spine.client.set(spine.bull('b', 'meta'), 'no hash');
    await expect(admin.pauseAll('moving')).rejects.toThrow(/WRONGTYPE/);
    expect(await isPaused('a')).toBe(true);
    await spine.client.del(spine.bull('b', 'meta'));
    expect(await admin.pauseAll('again')).toEqual(['a', 'b', 'c']);
    expect(await admin.resumeAll()).toEqual(['a', 'b', 'c']);
    expect(await Promise.all(['a', 'b', 'c'].map(isPaused))).toEqual([false, false, false]);
    expect(await admin.gates.list()).toEqual([]);
  });

  test('of everything that broke off half-way and was given up leaves no queue paused', async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    for (const queue of ['a', 'b']) await spine.submit(queue, [aJob('later')]);
    await spine.client.set(spine.bull('b', 'meta'), 'no hash');
    await expect(admin.pauseAll('moving')).rejects.toThrow(/WRONGTYPE/);
    expect(await admin.resumeAll()).toEqual(['a']);
    expect([await isPaused('a'), await admin.gates.everything()]).toEqual([false, undefined]);
  });

  test('of everything twice, with nothing known at first', async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    expect(await admin.pauseAll()).toEqual([]);
    await spine.submit('q', [aJob('later')]);
    expect(await admin.pauseAll()).toEqual(['q']);
    expect(await admin.resumeAll()).toEqual(['q']);
    expect(await isPaused('q')).toBe(false);
  });

  test('queues whose jobs were all due at once are known, and paused with everything', async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    await spine.submit('q', [aJob('now', { time: 1 })]);
    expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(1);
    expect(await admin.queues()).toMatchObject([{ name: 'q', scheduled: 0 }]);
    expect(await admin.pauseAll()).toEqual(['q']);
    expect(await isPaused('q')).toBe(true);
  });

  test('what BullMQ’s own pause stopped before stays so', async ({ task }) => {
    const { spine, admin, isPaused } = await world(task);
    await spine.submit('q', [aJob('later')]);
    const stock = new BullQueue('q', { connection: { url: spine.url }, prefix: spine.prefix });
    onTestFinished(() => stock.close());
    await stock.pause();
    expect([await admin.pauseAll(), await admin.resumeAll()]).toEqual([[], []]);
    expect(await isPaused('q')).toBe(true);
  });
});

describe('on the command line', () => {
  test('paused or on hold: listed with why; each verb says what it left', async ({ task }) => {
    const prefix = namespaceFor(task);
    const spine = await Spine.open({ url: sharedRedisUrl(), namespace: `carillon-${prefix}`, prefix });
    const cli = new InProcessCli(prefix);
    await spine.submit('emails', [aJob('a', { time: 1 })]);
    await cli.json('gates', 'hold', 'emails', '--note', 'provider down');
    expect(await cli.run('gates', 'get', 'other')).toMatchObject({ code: 0, stderr: 'other has no gate\n' });
    await cli.json('gates', 'set', 'emails', '--rate', '5', '--ageing', '90s', '--unmarked-priority', '7');
    expect(await cli.text('gates', 'list')).toMatch(/emails +0 +5\/s +5 +1m30s +7 +on hold since/);
    await cli.json('queues', 'pause', 'emails', '--note', 'deploy');
    expect(await cli.json('queues', 'list')).toMatchObject({
      queues: [
        {
          name: 'emails',
          hold: { since: expect.any(Number), note: 'provider down' },
          pause: { since: expect.any(Number), note: 'deploy' },
        },
      ],
    });
    expect(await cli.text('queues', 'list')).toMatch(
      /emails .* paused since .*Z: deploy; on hold since .*Z: provider down/,
    );
    expect(await cli.run('queues', 'resume', 'emails')).toMatchObject({
      code: 0,
      stdout: 'resumed emails\n',
      stderr: expect.stringContaining('carillon gates release emails'),
    });
    await cli.json('queues', 'pause', 'emails');
    expect(await cli.run('gates', 'release', 'emails')).toMatchObject({
      stderr: expect.stringContaining('carillon queues resume emails'),
    });
    expect(await cli.run('queues', 'pause', 'nobody')).toMatchObject({
      code: 0,
      stderr: 'nothing of nobody is known here yet: is the name right?\n',
    });
    expect(await cli.json('queues', 'pause', 'noone')).toMatchObject({ queues: ['noone'], known: false });
    expect(await cli.json('queues', 'resume', 'noone')).toMatchObject({ known: true });
    await cli.json('queues', 'pause', '--all', '--note', 'moving');
    expect(await cli.text('queues', 'list')).toMatch(/nobody .* paused since .*Z\n/);
    await cli.json('queues', 'resume', '--all');
    await cli.json('queues', 'resume', 'emails');
    expect(await cli.run('queues', 'resume', 'emails')).toMatchObject({
      stderr: 'it was not paused from here\n',
    });
  });
});
