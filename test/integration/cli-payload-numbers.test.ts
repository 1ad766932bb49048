import { describe, expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

const HUGE = '{"n":12345678901234567890}';
const OTHER = '{"n":98765432109876543210,"f":1.0}';

describe('a payload of the command line is stored and shown as it is written', () => {
  test.each([
    ['in the timers', ['--delay', '1h']],
    ['in BullMQ', []],
  ])('%s', async (where, time) => {
    const cli = new InProcessCli(namespaceFor({ name: `numbers ${where}` }));
    const shown = async () => /^data +(.*)$/m.exec(await cli.text('jobs', 'get', 'q', 'j'))?.[1];
    await cli.text('jobs', 'add', 'q', 'send', '--id', 'j', '--data', HUGE, ...time);
    expect(await shown()).toBe(HUGE);
    expect((await cli.text('jobs', 'get', 'q', 'j', '--json')).replace(/\s/g, '')).toContain(
      `"data":${HUGE}`,
    );
    const updated = await cli.text('jobs', 'update', 'q', 'j', '--data', OTHER, '--json');
    expect(updated.replace(/\s/g, '')).toContain(`"data":${OTHER}`);
    expect(await shown()).toBe(OTHER);
    if (time.length === 0) return;
    expect((await cli.text('jobs', 'list', 'q', '--json')).replace(/\s/g, '')).toContain(`"data":${OTHER}`);
  });

  test('of a dead letter too', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const queue = new Queue('q', { connection: sharedRedisUrl(), prefix: cli.prefix });
    onCleanup('queue', () => queue.close());
    await cli.text('jobs', 'add', 'q', 'send', '--id', 'j', '--data', HUGE);
    const client = queue.backend.shard.client;
    await client.hset(queue.toKey('j'), 'failedReason', 'no', 'finishedOn', Date.now(), 'atm', 1);
    await client.lrem(queue.toKey('wait'), 0, 'j');
    await client.zadd(queue.toKey('failed'), Date.now(), 'j');
    expect(await cli.text('dead', 'show', 'q', 'j')).toContain(HUGE);
  });
});

describe('a schedule takes no number that would become another one', () => {
  test('of the command line', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const times = ['--every', '1h', '--missed', 'skip'];
    const upsert = (data: string) => cli.run('schedules', 'upsert', 'q', 's', ...times, '--data', data);
    const { code, stderr } = await upsert(HUGE);
    expect(code).toBe(2);
    expect(stderr).toMatch(/data holds a number .*Write it as a text: "12345678901234567890"/);
    expect((await upsert('{"n":"12345678901234567890","e":1e21}')).code).toBe(0);
    expect((await cli.run('schedules', 'update', 'q', 's', '--data', '[1e999]')).code).toBe(2);
  });

  test('of a file, each with its line, and nothing else that JSON cannot hold', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const values = [
      '12345678901234567890', '.inf', '-.INF', '.nan', '0x1fffffffffffffff', '1e999', '0.12345678901234567890',
      '!!binary aGVsbG8=', '!!set { a, b }', '!!omap [a: 1]', '!!timestamp 2027-01-31', '!mine x',
    ]; // biome-ignore format: one list
    const kept = ['1e21', '0x1F', '0.1', '"12345678901234567890"', '!!str 12345678901234567890', '-0'];
    const lines = (list: string[]) => list.map((value, at) => `          v${at}: ${value}\n`).join('');
    const file = (list: string[]) =>
      cli.file(
        'f.yaml',
        `queues:\n  q:\n    s:\n      every: 1h\n      missed: skip\n      template:\n        data:\n${lines(list)}`,
      );
    const { code, stdout } = await cli.run('apply', '-f', file(values), '--yes', '--json');
    expect(code).toBe(2);
    const { problems } = JSON.parse(stdout).error as { problems: string[] };
    expect(problems.map((problem) => Number(problem.split(':')[1]))).toEqual(values.map((_, at) => 8 + at));
    await cli.text('apply', '-f', file(kept), '--yes');
    const exported = cli.file('exported.yaml', await cli.text('export'));
    expect(await cli.text('apply', '-f', exported)).toContain('0 to add, 0 to change, 1 unchanged');
  });
});

test('schedules upsert follows schedules of its own queue and of others', async ({ task }) => {
  const cli = new InProcessCli(namespaceFor(task));
  const upsert = (queue: string, id: string, ...more: string[]) =>
    cli.text('schedules', 'upsert', queue, id, '--every', '1h', '--missed', 'skip', ...more);
  await upsert('etl', 'load');
  await upsert('billing', 'nightly');
  await upsert('billing', 'a:b');
  const flags = ['--after', 'nightly', '--after', 'etl:load', '--after', 'billing:a:b'];
  await upsert('billing', 'report', ...flags);
  expect(await cli.json<{ definition: object }>('schedules', 'get', 'billing', 'report')).toMatchObject({
    definition: {
      after: ['nightly', { queue: 'etl', scheduleId: 'load' }, { queue: 'billing', scheduleId: 'a:b' }],
    },
  });
  await cli.text('schedules', 'update', 'billing', 'report', '--after', 'etl:load');
  expect(await cli.text('schedules', 'describe', 'billing', 'report')).toContain('etl:load');
});
