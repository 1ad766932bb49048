import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { ownChild } from '../support/child-guard.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import type { NodeProcess } from '../support/node-process.js';
import { spawnNode } from '../support/node-process.js';
import { CLI, Cli, type CliResult } from './cli-process.js';

/** A folder of its own in which `carillon dev` is started; whatever is left of it ends with the test. */
class Town {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'carillon-dev-')));
  readonly env: Record<string, string | undefined>;
  /** Goes to the folder first: it is where the process stands that counts. */
  readonly #start = join(this.dir, 'start.mjs');

  constructor(env: Record<string, string> = {}) {
    this.env = {
      ...new Cli(CLI, '', 'bull').env,
      CARILLON_REDIS_URL: undefined,
      CARILLON_PREFIX: undefined,
      ...env,
    };
    writeFileSync(
      this.#start,
      `process.chdir(${JSON.stringify(this.dir)});\nawait import(${JSON.stringify(CLI)});\n`,
    );
    onCleanup(`the folder ${this.dir}`, async () => {
      await this.#killRedis();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  /** Starts `carillon dev` in the folder. */
  spawn(...flags: string[]): NodeProcess {
    return spawnNode(this.#start, ['dev', ...flags], this.env);
  }

  /** Started and ready. */
  async up(...flags: string[]): Promise<{ dev: NodeProcess; cli: Cli }> {
    const dev = this.spawn(...flags);
    const line = await dev.waitForLine(/^ {2}export CARILLON_REDIS_URL=/);
    return { dev, cli: new Cli(CLI, line.slice(line.indexOf('=') + 1), 'bull') };
  }

  async run(...flags: string[]): Promise<CliResult> {
    const child = this.spawn(...flags);
    const { code } = await child.exited;
    return { code, stdout: child.lines.join('\n'), stderr: child.stderr };
  }

  get port(): number {
    return Number(readFileSync(join(this.dir, '.carillon', 'port'), 'utf8'));
  }

  async #killRedis(): Promise<void> {
    if (!existsSync(join(this.dir, '.carillon', 'port'))) return;
    const pid = await redisPid(this.port, this.dir);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }
}

/** The pid of the redis-server on a port, if it works on the folder's data. */
async function redisPid(port: number, dir: string): Promise<number | undefined> {
  const redis = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    const [, data] = (await redis.config('GET', 'dir')) as [string, string];
    if (!data.startsWith(dir)) return undefined;
    return Number((await redis.info('server')).match(/process_id:(\d+)/)?.[1]);
  } catch {
    return undefined;
  } finally {
    redis.disconnect();
  }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // One that ended and that nobody has buried yet is there.
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

// Most of their time is waiting: two at once.
describe.concurrent('carillon dev', { timeout: 120_000 }, () => {
  test('runs jobs by a stock worker, stops all, and finds its data and port again', async () => {
    const town = new Town();
    const { dev, cli } = await town.up('--queue', 'emails', '--queue', 'reports');
    await dev.waitForLine('worker     prints each run of emails, reports');
    await cli.text(
      'jobs',
      'add',
      'emails',
      'send',
      '--id',
      'order-5',
      '--delay',
      '50ms',
      '--data',
      '{"to":"ann"}',
    );
    expect(await dev.waitForLine('ran send order-5 of emails')).toMatch(/\(\d+ ms late\) \{"to":"ann"\}$/);
    await cli.text('jobs', 'add', 'reports', 'sum', '--id', 'kept', '--delay', '1h');
    const { port } = town;

    expect(await dev.stop()).toEqual({ code: 0, signal: null });
    expect(dev.lines.at(-1)).toBe('stopped; the data stays for the next start');
    expect(dev.stderr).toBe('');
    expect(await redisPid(port, town.dir)).toBeUndefined();

    const again = await town.up('--queue', 'reports');
    expect(town.port).toBe(port);
    expect(await again.cli.json('jobs', 'get', 'reports', 'kept')).toMatchObject({ where: 'timers' });
    await again.cli.text('jobs', 'promote', 'reports', 'kept');
    await again.dev.waitForLine('ran sum kept of reports');
    expect(await again.dev.stop()).toEqual({ code: 0, signal: null });
  });

  test('started twice, the second says where the first is', async () => {
    const town = new Town();
    const { dev, cli } = await town.up();
    const second = await town.run();
    expect(second.stdout).toContain(`carillon dev runs here already (process ${dev.pid})`);
    expect(second.stdout).toContain(`export CARILLON_REDIS_URL=${cli.redis}`);
    expect(second).toMatchObject({ code: 0, stderr: '' });
    const third = await town.run('--json');
    expect(JSON.parse(third.stdout)).toEqual({ url: cli.redis, pid: dev.pid, alreadyRunning: true });
    // The first is as it was.
    await cli.text('jobs', 'add', 'demo', 'hello', '--delay', '50ms');
    await dev.waitForLine('ran hello');
    await dev.stop();
  });

  test.runIf(process.platform === 'linux')(
    'one that ended and was not buried yet runs here no more',
    async () => {
      const town = new Town();
      // The shell becomes a sleep, which asks for no child's end, before its child ends.
      const parent = spawn('sh', ['-c', 'sleep 1 & echo $!; exec sleep 60'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      ownChild(parent);
      const [line] = (await once(parent.stdout, 'data')) as [Buffer];
      const pid = Number(line.toString());
      await eventually(() => / [Z] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));
      mkdirSync(join(town.dir, '.carillon'), { recursive: true });
      writeFileSync(join(town.dir, '.carillon', 'lock.json'), JSON.stringify({ pid }));
      const { dev } = await town.up();
      expect(dev.lines.join('\n')).not.toContain('runs here already');
      await dev.stop();
      parent.kill('SIGKILL');
    },
  );

  test('every write is in the append-only file before it is answered', async () => {
    const { dev, cli } = await new Town().up();
    const redis = new Redis(cli.redis);
    onCleanup('the client', () => redis.disconnect());
    const settings = await redis.config('GET', 'appendonly', 'appendfsync', 'maxmemory-policy', 'bind');
    expect(settings).toEqual(expect.arrayContaining(['yes', 'always', 'noeviction', '127.0.0.1']));
    redis.disconnect();
    await dev.stop();
  });

  test('killed, it is started again over what it left behind', async () => {
    const town = new Town();
    const { dev, cli } = await town.up();
    await cli.text('jobs', 'add', 'demo', 'hello', '--id', 'kept', '--delay', '1h');
    const left = await redisPid(town.port, town.dir);
    await dev.kill9();
    expect(await redisPid(town.port, town.dir)).toBe(left);
    const again = await town.up();
    const pid = await redisPid(town.port, town.dir);
    expect(pid).not.toBe(left);
    expect(await again.cli.json('jobs', 'get', 'demo', 'kept')).toMatchObject({ where: 'timers' });
    // The worker of the killed one has ended too: each run is printed, which only the new one's worker can do.
    for (const id of ['a', 'b', 'c', 'd', 'e'])
      await again.cli.text('jobs', 'add', 'demo', 'hello', '--id', id);
    for (const id of ['a', 'b', 'c', 'd', 'e']) await again.dev.waitForLine(`ran hello ${id} of demo`);
    await again.dev.stop();
  });

  test('Redis dies: it says so, and ends with 1', async () => {
    const town = new Town();
    const { dev } = await town.up();
    process.kill((await redisPid(town.port, town.dir)) as number, 'SIGKILL');
    expect(await dev.exited).toEqual({ code: 1, signal: null });
    expect(dev.stderr).toMatch(/^error: redis-server on port \d+ ended: .*\(REDIS_UNAVAILABLE\)/m);
    expect(existsSync(join(town.dir, '.carillon', 'lock.json'))).toBe(false);
  });

  test('--json prints one document when it is ready, and runs on standard error', async () => {
    const town = new Town();
    const port = await freePort();
    const dev = town.spawn('--json', '--port', String(port));
    await dev.waitForLine(/^}$/);
    const document = JSON.parse(dev.lines.join('\n')) as { url: string };
    expect(document).toEqual({
      url: `redis://127.0.0.1:${port}`,
      pid: dev.pid,
      folder: join(town.dir, '.carillon'),
      prefix: 'bull',
      namespace: 'carillon',
      queues: ['demo'],
    });
    await new Cli(CLI, document.url, 'bull').text('jobs', 'add', 'demo', 'hello', '--id', 'a');
    await eventually(() => dev.stderr.includes('ran hello a of demo'));
    await dev.stop();
    expect(JSON.parse(dev.lines.join('\n'))).toEqual(document);
  });

  test('several schedulers share the work by an etcd of its own, and all end with it', async () => {
    const town = new Town();
    const { dev, cli } = await town.up('--instances', '2', '--etcd', '1', '--partitions', '4');
    const etcd = (await dev.waitForLine(/^ {2}export CARILLON_ETCD=/)).split('=')[1] as string;
    await dev.waitForLine('scheduler  2 of them, namespace carillon, prefix bull, 4 partitions');
    await eventually(
      async () => {
        const { partitions } = await cli.json<{ partitions: { state: string }[] }>(
          'partitions',
          'list',
          '--etcd',
          etcd,
        );
        expect(partitions.map(({ state }) => state)).toEqual(Array(4).fill('led'));
      },
      { timeout: 30_000 },
    );
    const listed = await cli.json<{ instances: { instanceId: string; pid: number }[] }>(
      'instances',
      'list',
      '--etcd',
      etcd,
    );
    expect(listed.instances.map(({ instanceId }) => instanceId)).toEqual(['dev-1', 'dev-2']);
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f'])
      await cli.text('jobs', 'add', 'demo', 'hello', '--id', id, '--delay', '100ms');
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await dev.waitForLine(`ran hello ${id} of demo`);
    expect(await dev.stop()).toEqual({ code: 0, signal: null });
    expect(listed.instances.filter(({ pid }) => runs(pid))).toEqual([]);
    const pids = JSON.parse(
      readFileSync(join(town.dir, '.carillon', 'etcd', 'pids.json'), 'utf8'),
    ) as number[];
    expect(pids.map(runs)).toEqual([false]);

    // Started without etcd, the one scheduler leads what the several did.
    const alone = await town.up();
    await alone.cli.text('jobs', 'add', 'demo', 'hello', '--id', 'g', '--delay', '100ms');
    await alone.dev.waitForLine('ran hello g of demo');
    await alone.dev.stop();
  });

  test('killed, it leaves no etcd and no scheduler behind for long', async () => {
    const town = new Town();
    const { dev, cli } = await town.up('--instances', '2', '--etcd', '1', '--partitions', '4');
    const etcd = (await dev.waitForLine(/^ {2}export CARILLON_ETCD=/)).split('=')[1] as string;
    const { instances } = await cli.json<{ instances: { pid: number }[] }>(
      'instances',
      'list',
      '--etcd',
      etcd,
    );
    const [left] = JSON.parse(readFileSync(join(town.dir, '.carillon', 'etcd', 'pids.json'), 'utf8')) as [
      number,
    ];
    await dev.kill9();
    await eventually(() => instances.every(({ pid }) => !runs(pid)), { timeout: 20_000 });
    const again = await town.up('--instances', '2');
    await again.dev.waitForLine('scheduler  2 of them, namespace carillon, prefix bull');
    expect(runs(left)).toBe(false);
    await again.cli.text('jobs', 'add', 'demo', 'hello', '--id', 'a', '--delay', '100ms');
    await again.dev.waitForLine('ran hello a of demo');
    await again.dev.stop();
  });

  test('no etcd here, and partitions without one', async () => {
    const missing = await new Town({ CARILLON_ETCD_SERVER: '/nowhere/etcd' }).run('--etcd', '3');
    expect(missing.stderr).toMatch(
      /^error: \/nowhere\/etcd cannot be run: ENOENT \(UNSUPPORTED\)\. Install it[^\n]+\n$/,
    );
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    const alone = await new Town().run('--partitions', '8');
    expect(alone.stderr).toBe(
      'error: partitions are shared by etcd, and there is none (INVALID_OPTION). Give --etcd 1, or 3, as well.\n',
    );
    expect(alone.code).toBe(2);
  });

  test('a port that is taken, and a redis-server that is not there', async () => {
    const town = new Town();
    const { dev } = await town.up();
    const other = new Town();
    const taken = await other.run('--port', String(town.port));
    expect(taken.stderr).toMatch(
      /^error: redis-server on port \d+ ended: the port is taken \(REDIS_UNAVAILABLE\)\. Give another --port\.\n$/,
    );
    expect(taken).toMatchObject({ code: 1, stdout: '' });
    const missing = await new Town({ CARILLON_REDIS_SERVER: '/nowhere/redis-server' }).run();
    expect(missing.stderr).toMatch(
      /^error: \/nowhere\/redis-server cannot be run: ENOENT \(UNSAFE_REDIS\)\. Install it[^\n]+\n$/,
    );
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    await dev.stop();
  });
});
