import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { aJob } from '../support/builders.js';
import { jobModel, packRecord } from '../support/builders-record.js';
import { ownChild } from '../support/child-guard.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { CLI, Cli } from './cli-process.js';

async function setup(task: { name: string }) {
  const prefix = namespaceFor(task);
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: `carillon-${prefix}`, prefix });
  return { spine, cli: new Cli(CLI, sharedRedisUrl(), prefix) };
}

describe('gates', { timeout: 60_000 }, () => {
  test('set, hold, list, release, clear; a queue and everything paused and resumed', async ({ task }) => {
    const { spine, cli } = await setup(task);
    await cli.json('gates', 'set', 'emails', '--rate', '100/1m', '--burst', '5', '--max-waiting', '20');
    await cli.json('gates', 'hold', 'emails', '--note', 'provider down');
    await spine.submit('emails', [aJob('a', { time: 1 })]);
    const limits = { max: 100, duration: 60_000, burst: 5, maxWaiting: 20 };
    const held = { queue: 'emails', held: 1, ...limits, hold: true, note: 'provider down' };
    expect(await cli.json('gates', 'list')).toEqual({
      gates: [{ ...held, since: expect.any(Number) }],
      everything: null,
    });
    expect(await cli.text('gates', 'get', 'emails')).toMatch(
      /emails +1 +100 in 60000 ms +5 +20 +on hold since .*: provider down/,
    );
    expect(await cli.json('jobs', 'list', '--state', 'held')).toMatchObject({
      jobs: [{ id: 'a', state: 'held' }],
    });
    await cli.json('gates', 'release', 'emails');
    expect(await cli.json('gates', 'get', 'emails')).toMatchObject({ gates: [{ held: 1, ...limits }] });
    await cli.json('gates', 'clear', 'emails');
    expect(await cli.json('queues', 'pause', 'emails', '--note', 'x')).toMatchObject({ queues: ['emails'] });
    expect(await spine.client.hget(spine.bull('emails', 'meta'), 'paused')).toBe('1');
    await cli.json('queues', 'resume', 'emails');
    expect(await cli.json('queues', 'pause', '--all', '--note', 'moving')).toMatchObject({
      queues: ['emails'],
    });
    expect(await cli.json('gates', 'list')).toMatchObject({
      everything: { paused: true, pauseNote: 'moving' },
    });
    expect(await cli.json('queues', 'resume', '--all')).toMatchObject({ queues: ['emails'] });
    expect(await spine.client.hget(spine.bull('emails', 'meta'), 'paused')).toBeNull();
  });
});

describe('queues', { timeout: 60_000 }, () => {
  test('counts, and why a queue is parked', async ({ task }) => {
    const { spine, cli } = await setup(task);
    await spine.submit('emails', [aJob('a'), aJob('b')]);
    await spine.jobs.pause('emails', 'b', '', 'r');
    await spine.client.set(spine.bull('sick', 'wait'), 'x');
    await spine.submit('sick', [aJob('a', { time: 1 })]);
    const reason = 'wait is a string, BullMQ needs a list';
    expect(await cli.json('queues', 'list')).toEqual({
      queues: [
        { name: 'emails', scheduled: 1, paused: 1, parked: 0, waiting: 0, held: 0, schedules: 0 },
        {
          name: 'sick',
          scheduled: 0,
          paused: 0,
          parked: 1,
          waiting: 0,
          held: 0,
          schedules: 0,
          broken: { since: expect.any(Number), reason },
        },
      ],
    });
    expect(await cli.text('queues', 'list')).toMatch(
      new RegExp(
        `^queue +scheduled +paused +parked +waiting +held +schedules +broken +stopped\\nemails +1 +1 +0 +0 +0 +0\\nsick +0 +0 +1 +0 +0 +0 +${reason}`,
      ),
    );
  });
});

describe('quarantine', { timeout: 60_000 }, () => {
  test('what cannot be read is shown, cannot be released, and can be discarded', async ({ task }) => {
    const { spine, cli } = await setup(task);
    const bucket = bucketOf('emails:bad');
    await spine.client.hset(spine.keys.jobs(bucket), 'emails:bad', '\u0010bbish\u001b[31m');
    await spine.client.zadd(spine.keys.due(bucket), 1, 'emails:bad');
    await spine.drain(await spine.lead());
    expect(await cli.json('quarantine', 'list', 'emails')).toEqual({
      quarantined: [
        {
          queue: 'emails',
          id: 'bad',
          since: expect.any(Number),
          reason: expect.stringMatching(/^BAD_RECORD/),
        },
      ],
      cursor: null,
    });
    expect(await cli.json('jobs', 'get', 'emails', 'bad')).toMatchObject({ where: 'quarantine' });
    expect(await cli.failure('quarantine', 'release', 'emails', 'bad')).toContain('(BAD_RECORD)');
    expect(await cli.text('quarantine', 'discard', 'emails', 'bad')).toBe('discarded bad of emails');
    expect(await cli.failure('quarantine', 'discard', 'emails', 'bad')).toBe(
      'error: nothing of the queue emails is set aside under this id (NOT_FOUND). Check queue and id; `carillon quarantine list` shows what is.',
    );
    const { stdout, stderr } = await cli.run('quarantine', 'list');
    expect(stdout).not.toContain('bad');
    expect(stderr).toBe('nothing is set aside\n');
  });

  test('what was cured is released, and fires', async ({ task }) => {
    const { spine, cli } = await setup(task);
    const owned = await spine.lead();
    await spine.submit('emails', [aJob('a', { time: 300, relative: true })]);
    // Somebody else's job of the same id.
    await spine.client.hset(spine.bull('emails', 'a'), 'name', 'other');
    await eventually(async () => (await spine.pop(owned)).trouble.length > 0);
    expect(await cli.text('quarantine', 'list')).toContain('ID_TAKEN');
    await spine.client.del(spine.bull('emails', 'a'));
    expect(await cli.json('quarantine', 'release', 'emails', 'a')).toEqual({
      queue: 'emails',
      id: 'a',
      done: 'released',
    });
    expect((await spine.pop(owned)).popped).toBe(1);
    expect(await spine.client.lrange(spine.bull('emails', 'wait'), 0, -1)).toEqual(['a']);
  });
});

describe('doctor', { timeout: 60_000 }, () => {
  test('a healthy namespace ends with 0, a sick one with 1', async ({ task }) => {
    const { spine, cli } = await setup(task);
    await spine.submit('emails', [aJob('a')]);
    const healthy = await cli.text('doctor', '--pause', '50ms');
    expect(healthy).toMatch(
      /carillon-t-.*: 0 errors, 1 warning; nobody leads\nlooked at 1 record, 1 queue, 0 waiting runs/,
    );
    expect(healthy).toContain('1 timers are pending');

    const lost = packRecord(jobModel({ at: 4_000_000_000_000, inc: 1024, ver: 1024, timestamp: 1 }));
    await spine.client.hset(spine.keys.jobs(bucketOf('emails:lost')), 'emails:lost', lost);
    const { code, stdout, stderr } = await cli.run('doctor', '--pause', '50ms');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(
      /^error +index +emails:lost\n +bucket \d+: it is scheduled and does not stand in due\n +→ /m,
    );
    const sick = await cli.run('doctor', '--pause', '50ms', '--json');
    expect(sick.code).toBe(1);
    const report = JSON.parse(sick.stdout) as { findings: { check: string }[] };
    expect(report).toMatchObject({
      healthy: false,
      errors: 2,
      namespace: spine.namespace,
      prefix: cli.prefix,
    });
    expect(report.findings.map(({ check }) => check).sort()).toEqual(['counts', 'index', 'leader']);
  });
});

describe('scheduler', { timeout: 90_000 }, () => {
  test('moves what is due until SIGTERM, then gives its leadership back', async () => {
    const server = await startRedis();
    const redis = new Redis(server.url);
    onTestFinished(() => redis.disconnect());
    const cli = new Cli(CLI, server.url, 'bull');
    const first = cli.spawn('scheduler', '--instance-id', 'one');
    await first.waitForLine(`scheduler of carillon serves ${server.url}`);
    const second = cli.spawn('scheduler', '--json');
    await cli.text('jobs', 'add', 'emails', 'send', '--id', 'a', '--delay', '100ms');
    await eventually(async () => (await redis.llen('bull:emails:wait')) === 1);
    expect(await redis.hget('{carillon}:leader', 'holder')).toBe('one');

    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(first.lines.at(-1)).toBe('stopped; dispatched 1 runs, set 0 aside, repaired 0');
    // The stand-by does not wait for a heartbeat to grow old.
    await eventually(async () => ![null, 'one'].includes(await redis.hget('{carillon}:leader', 'holder')), {
      timeout: 5000,
    });
    expect(await second.stop()).toEqual({ code: 0, signal: null });
    expect(JSON.parse(second.lines.join('\n'))).toEqual({
      namespace: 'carillon',
      dispatched: 0,
      quarantined: 0,
      repaired: 0,
    });
    expect(await redis.hget('{carillon}:leader', 'holder')).toBeNull();
  });

  test('goes on when nobody reads its output any more, and still stops in order', async () => {
    const server = await startRedis();
    const redis = new Redis(server.url);
    onTestFinished(() => redis.disconnect());
    const cli = new Cli(CLI, server.url, 'bull');
    const child = spawn(process.execPath, [CLI, 'scheduler', '--instance-id', 'deaf'], {
      env: { ...process.env, ...cli.env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    ownChild(child);
    child.stdout.destroy();
    await cli.text('jobs', 'add', 'emails', 'send', '--delay', '100ms');
    await eventually(async () => (await redis.llen('bull:emails:wait')) === 1);
    expect(await redis.hget('{carillon}:leader', 'holder')).toBe('deaf');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await redis.hget('{carillon}:leader', 'holder')).toBeNull();
  });

  test('refuses a Redis that would lose jobs, unless it may', async () => {
    const server = await startRedis({ args: ['--appendonly', 'no'] });
    const cli = new Cli(CLI, server.url, 'bull');
    const { code, stdout, stderr } = await cli.run('scheduler');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
      /^error: Redis keeps no append-only file.*\(UNSAFE_REDIS\)\. .* --allow-volatile /,
    );
    const volatile = cli.spawn('scheduler', '--allow-volatile');
    await volatile.waitForLine('scheduler of carillon serves');
    expect(await volatile.stop()).toEqual({ code: 0, signal: null });
  });

  test('says that Redis is not there, and ends with 1; told to stop while it waits, it ends with 0', async () => {
    const cli = new Cli(CLI, 'redis://127.0.0.1:1', 'bull');
    const waiting = spawnNode(CLI, ['scheduler'], { ...cli.env, CARILLON_LOG_LEVEL: 'debug' });
    await eventually(() => waiting.stderr.includes('ECONNREFUSED'), { timeout: 20_000 });
    expect(await waiting.stop()).toEqual({ code: 0, signal: null });
    const { code, stdout, stderr } = await cli.run('scheduler');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^error: .*\(REDIS_UNAVAILABLE\)/);
  });
});
