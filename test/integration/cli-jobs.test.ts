import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue as BullQueue } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/client/queue.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { CLI, Cli } from './cli-process.js';

const AT = '2027-01-31T09:12:00.000Z';

function setup(task: { name: string }) {
  const cli = new Cli(CLI, sharedRedisUrl(), namespaceFor(task));
  const bull = new BullQueue('emails', { connection: { url: cli.redis }, prefix: cli.prefix });
  onTestFinished(() => bull.close());
  return { cli, bull };
}

describe('jobs', { timeout: 60_000 }, () => {
  test('a job’s life, from add to cancel', async ({ task }) => {
    const { cli } = setup(task);
    const data = { to: 'ann@example.com', tab: 'a\tb' };
    const added = await cli.json(
      'jobs', 'add', 'emails', 'send', '--id', 'order-5', '--at', AT, '--data', JSON.stringify(data), '--opts', '{"attempts":3,"priority":2}',
    ); // biome-ignore format: one command
    expect(added).toEqual({
      queue: 'emails',
      id: 'order-5',
      name: 'send',
      answer: 'created',
      scheduledFor: Date.parse(AT),
      due: AT,
    });
    expect(await cli.json('jobs', 'get', 'emails', 'order-5')).toMatchObject({
      where: 'timers',
      state: 'scheduled',
      name: 'send',
      due: AT,
      data,
      opts: { attempts: 3 },
      priority: 2,
    });
    expect(await cli.text('jobs', 'pause', 'emails', 'order-5', '--note', 'wait for Ann')).toBe(
      'paused order-5 in emails',
    );
    expect(await cli.json('jobs', 'list', 'emails', '--state', 'paused')).toMatchObject({
      jobs: [{ queue: 'emails', id: 'order-5', state: 'paused', note: 'wait for Ann', data }],
      cursor: null,
    });
    expect(await cli.text('jobs', 'resume', 'emails', 'order-5')).toBe(
      `resumed order-5 in emails, due ${AT}`,
    );
    const later = '2027-02-01T00:00:00.000Z';
    expect(await cli.json('jobs', 'reschedule', 'emails', 'order-5', '--at', later)).toMatchObject({
      done: 'rescheduled',
      job: { due: later },
    });
    expect(await cli.text('jobs', 'cancel', 'emails', 'order-5', '--reason', 'sold out')).toBe(
      'cancelled order-5 in emails',
    );
    expect(await cli.json('jobs', 'get', 'emails', 'order-5')).toMatchObject({
      where: 'ended',
      state: 'cancelled',
    });
    expect(await cli.failure('jobs', 'cancel', 'emails', 'order-5')).toBe(
      'error: it has ended (cancelled) (CONFLICT). Nothing can be changed of it any more. To do the same again, add a job with another id.',
    );
  });

  test('an id that is added again does nothing, unless it is to replace', async ({ task }) => {
    const { cli } = setup(task);
    await cli.text('jobs', 'add', 'emails', 'send', '--id', 'a', '--delay', '1h');
    expect(await cli.text('jobs', 'add', 'emails', 'send', '--id', 'a', '--delay', '2h')).toMatch(
      /^existing a in emails, due .*; nothing was added$/,
    );
    expect(
      await cli.json('jobs', 'add', 'emails', 'send', '--id', 'a', '--at', AT, '--if-exists', 'replace'),
    ).toMatchObject({ answer: 'replaced', due: AT });
  });

  test('what is due now is in BullMQ at once, and promote brings what waits', async ({ task }) => {
    const { cli, bull } = setup(task);
    const now = await cli.json<{ id: string }>('jobs', 'add', 'emails', 'send', '--data', '5');
    expect(await cli.json('jobs', 'get', 'emails', now.id)).toMatchObject({
      where: 'bullmq',
      state: 'waiting',
      data: 5,
    });
    await cli.text('jobs', 'add', 'emails', 'send', '--id', 'a', '--delay', '1h');
    expect(await cli.text('jobs', 'promote', 'emails', 'a')).toBe('promoted a in emails');
    expect((await bull.getWaiting()).map(({ id }) => id).sort()).toEqual([now.id, 'a'].sort());
    expect(await cli.failure('jobs', 'promote', 'emails', 'nobody')).toContain(
      '(NOT_FOUND). Check queue and id',
    );
  });

  test('a payload from a file and from standard input', async ({ task }) => {
    const { cli } = setup(task);
    const dir = mkdtempSync(join(tmpdir(), 'carillon-data-'));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'mail.json');
    writeFileSync(file, '{"from":"file"}');
    await cli.text('jobs', 'add', 'emails', 'send', '--id', 'a', '--delay', '1h', '--data-file', file);
    expect(await cli.json('jobs', 'get', 'emails', 'a')).toMatchObject({ data: { from: 'file' } });
    const args = ['jobs', 'add', 'emails', 'send', '--id', 'b', '--delay', '1h', '--data-file', '-'];
    const env = { ...process.env, ...cli.env } as NodeJS.ProcessEnv;
    const child = spawnSync(process.execPath, [CLI, ...args], { input: '{"from":"stdin"}', env });
    expect(child.stderr.toString()).toBe('');
    expect(await cli.json('jobs', 'get', 'emails', 'b')).toMatchObject({ data: { from: 'stdin' } });
  });

  test('what makes no sense is refused by its own name', async ({ task }) => {
    const { cli } = setup(task);
    for (const [args, line] of [
      [['jobs', 'list', '--state', 'pending'], /^error: state cannot be .*pending/],
      [['jobs', 'add', '', 'send'], /^error: queue is empty/],
      [['jobs', 'add', 'a:b', 'send'], /^error: queue holds a colon/],
      [
        ['jobs', 'add', 'emails', 'send', '--delay', '1h', '--opts', '{"delay":5}'],
        /^error: opts holds delay too/,
      ],
      [['scheduler', '--duplicate-window', '2h'], /^error: duplicateWindow: 7200000 is longer than 1h/],
    ] as const) {
      const { code, stdout, stderr } = await cli.run(...args);
      expect({ code, stdout }, args.join(' ')).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(line);
    }
  });

  test('a long list comes in pages; a page on a screen says how to go on', async ({ task }) => {
    const { cli } = setup(task);
    const queue = new Queue('emails', { connection: cli.redis, prefix: cli.prefix });
    onTestFinished(() => queue.close());
    await queue.addBulk(
      ['a', 'b', 'c', 'd', 'e'].map((jobId) => ({ name: 'send', data: {}, opts: { jobId, at: AT } })),
    );
    const ids: string[] = [];
    let cursor: string | null = null;
    do {
      const flags: string[] = cursor === null ? [] : ['--cursor', cursor];
      const page: { jobs: { id: string }[]; cursor: string | null } = await cli.json(
        'jobs',
        'list',
        '--limit',
        '2',
        ...flags,
      );
      expect(page.jobs.length).toBeLessThanOrEqual(2);
      ids.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== null);
    expect(ids.sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
    const { stdout, stderr } = await cli.run('jobs', 'list', '--limit', '2');
    expect(stdout.split('\n')).toHaveLength(3);
    expect(stdout).toContain(AT);
    expect(stderr).toMatch(/^there is more: --cursor \d+\.\d+\.\d+\n$/);
  });

  test('asking writes nothing', async ({ task }) => {
    const cli = new Cli(CLI, sharedRedisUrl(), namespaceFor(task));
    const redis = new Redis(cli.redis);
    onTestFinished(() => redis.disconnect());
    for (const [args, empty] of [
      [['jobs', 'list'], { jobs: [], cursor: null }],
      [['schedules', 'list'], { schedules: [], cursor: null }],
      [['schedules', 'list', 'emails', '--tag', 'x'], { schedules: [], cursor: null }],
      [['jobs', 'history', 'emails', 'a'], { history: [] }],
      [['queues', 'list'], { queues: [] }],
      [['quarantine', 'list'], { quarantined: [], cursor: null }],
    ] as const) {
      expect(await cli.json(...args)).toEqual(empty);
    }
    for (const [noun, verb] of [
      ['jobs', 'get'],
      ['jobs', 'cancel'],
      ['schedules', 'get'],
      ['schedules', 'describe'],
      ['schedules', 'runs'],
      ['schedules', 'trigger'],
      ['schedules', 'delete'],
      ['schedules', 'next'],
    ] as const) {
      expect(await cli.failure(noun, verb, 'emails', 'a')).toContain('holds nothing (NOT_FOUND)');
    }
    expect(await redis.keys(`*${cli.prefix}*`)).toEqual([]);
  });

  test.for([
    [['jobs', 'add', 'emails', 'send', '--id', '5'], 'INVALID_ID'],
    [['jobs', 'add', 'a:b', 'send'], 'INVALID_ID'],
    [['jobs', 'add', 'emails', 'send', '--opts', '{"atempts":3}'], 'INVALID_OPTION'],
    [['jobs', 'add', 'emails', 'send', '--if-exists', 'maybe', '--id', 'a'], 'INVALID_OPTION'],
    [['jobs', 'list', '--state', 'sleeping'], 'INVALID_OPTION'],
    [['jobs', 'list', '--cursor', 'x'], 'INVALID_OPTION'],
  ] as const)('bad input: %j', async ([args, code], { task }) => {
    const { cli } = setup(task);
    const result = await cli.run(...args);
    expect(result.stderr).toMatch(new RegExp(`^error: [^\\n]+ \\(${code}\\)[^\\n]*\\n$`));
    expect(result).toMatchObject({ code: 2, stdout: '' });
  });
});
