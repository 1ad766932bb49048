import type {
  Job as BullJob,
  Queue as BullQueue,
  ConnectionOptions,
  JobsOptions,
  QueueOptions,
} from 'bullmq';
import { expect, expectTypeOf, test } from 'vitest';
import {
  type Job,
  type JobOptions,
  Queue,
  type ScheduleDefinitionChange,
  type ScheduleDifference,
  type UpdatedSchedule,
} from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { connection } from './twins.js';

interface Mail {
  to: string;
}

/** What a program that was written for BullMQ declares; each line must compile as it stands. */
async function programForBullmq(
  queue: BullQueue<Mail, number, 'send' | 'drop'>,
): Promise<BullJob<Mail, number>> {
  return queue.add('send', { to: 'ann' }, { delay: 1000, attempts: 3, backoff: { type: 'fixed', delay: 5 } });
}

test('our types stand where BullMQ’s stood', async ({ task }) => {
  const prefix = namespaceFor(task);
  const given: ConnectionOptions = connection();
  const options: QueueOptions = { connection: given, prefix };
  const queue = new Queue<Mail, number, 'send' | 'drop'>('q', options);
  onCleanup('queue', () => queue.close());
  const asTheirs: BullQueue<Mail, number, 'send' | 'drop'> = queue;
  expect(await programForBullmq(asTheirs)).toBeInstanceOf(Object);

  const job = await queue.add('drop', { to: 'bob' }, { at: new Date(Date.now() + 60_000) });
  expectTypeOf(job).toEqualTypeOf<Job<Mail, number, 'send' | 'drop'>>();
  expectTypeOf(job.data.to).toEqualTypeOf<string>();
  expectTypeOf<JobsOptions>().toExtend<JobOptions>();
  const read = await queue.getJob('none');
  expectTypeOf(read?.data.to).toEqualTypeOf<string | undefined>();
  expectTypeOf(read?.scheduledFor).toEqualTypeOf<number | undefined>();
  expectTypeOf(await queue.getDelayed()).toEqualTypeOf<Job<Mail, number, 'send' | 'drop'>[]>();
  // @ts-expect-error: a payload of another type
  expectTypeOf(() => queue.add('send', { too: 'ann' })).toBeFunction();
  // @ts-expect-error: a name that the queue does not have
  expectTypeOf(() => queue.add('sent', { to: 'ann' })).toBeFunction();

  const untyped = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => untyped.close());
  const any = await untyped.add('x', { deep: { er: 1 } }, { delay: 1000 });
  expectTypeOf(any.data.deep.er).toBeAny();

  const named = new Queue<{ send: Mail; count: number }>('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => named.close());
  const sent = await named.add('send', { to: 'ann' }, { delay: 1000 });
  expectTypeOf(sent.data).toEqualTypeOf<Mail>();
  expectTypeOf(sent.name).toEqualTypeOf<'send'>();
  // @ts-expect-error: the payload of another name
  expectTypeOf(() => named.add('send', 5)).toBeFunction();
});

test('a change of a schedule: any option, null where there is a default, the queue’s own payload', async ({
  task,
}) => {
  const queue = new Queue<Mail, number, 'send' | 'drop'>('q', {
    connection: sharedRedisUrl(),
    prefix: namespaceFor(task),
  });
  onCleanup('queue', () => queue.close());
  await queue.schedules.upsert('s', { cron: '@daily', missed: 'skip', jitter: '1m' });
  const handle = queue.schedules.get('s');
  const changes: ScheduleDefinitionChange = { jitter: null, tags: null, tz: 'Europe/London' };
  const updated: UpdatedSchedule = await handle.update(changes, { name: 'send', data: { to: 'ann' } });
  expect(updated.differences.map(({ option }: ScheduleDifference) => option)).toEqual([
    'tz',
    'jitter',
    'name',
    'data',
  ]);
  await handle.update({}, { opts: { attempts: 3, priority: null } });
  // @ts-expect-error: every schedule says what becomes of missed ticks
  expectTypeOf(() => handle.update({ missed: null })).toBeFunction();
  // @ts-expect-error: every schedule fires
  expectTypeOf(() => handle.update({ cron: null })).toBeFunction();
  // @ts-expect-error: no option of a schedule
  expectTypeOf(() => handle.update({ paused: true })).toBeFunction();
  // @ts-expect-error: a payload of another type
  expectTypeOf(() => handle.update({}, { data: { too: 'ann' } })).toBeFunction();
});
