import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownChild, ownFolder } from '../../support/child-guard.js';
import { type ComposeService, Loopback, readCompose } from '../../support/compose.js';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { type NodeProcess, spawnNode } from '../../support/node-process.js';
import { type RedisServer, startRedis } from '../../support/redis-server.js';
import { CLI } from '../cli-process.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const { services } = readCompose();
const MEMBERS = ['etcd1', 'etcd2', 'etcd3'];

/** What the compose file starts, without Docker: the same command lines and environment, on loopback. */
class Town {
  readonly dir = mkdtempSync(join(tmpdir(), 'carillon-compose-'));
  readonly members: ChildProcess[] = [];
  schedulers: NodeProcess[] = [];
  workers: NodeProcess[] = [];
  producer: NodeProcess | undefined;

  private constructor(
    readonly redis: RedisServer,
    readonly loopback: Loopback,
  ) {
    ownFolder(this.dir);
  }

  static async build(): Promise<Town> {
    const [binary, ...args] = services.redis?.command ?? [];
    expect(binary).toBe('redis-server');
    const redis = await startRedis({ args });
    const ports = new Map([['redis:6379', redis.port]]);
    for (const member of MEMBERS) {
      for (const port of [2379, 2380]) ports.set(`${member}:${port}`, await freePort());
    }
    return new Town(redis, new Loopback(ports));
  }

  service(name: string): ComposeService {
    const service = services[name];
    if (service === undefined) throw new Error(`there is no service ${name}`);
    return service;
  }

  /** A service's environment as Compose would give it, with the defaults of its variables. */
  env(name: string): Record<string, string | undefined> {
    const clean: Record<string, string | undefined> = { REDIS_URL: undefined, CARILLON_NAMESPACE: undefined };
    for (const [key, text] of Object.entries(this.service(name).environment ?? {})) {
      clean[key] = this.loopback.of(name, text.replace(/\$\{\w+:-([^}]*)\}/g, '$1'));
    }
    return clean;
  }

  startEtcd(name: string): void {
    const [binary = '', ...args] = this.service(name).command ?? [];
    expect(binary).toBe('etcd');
    const mapped = args.map((arg) => this.loopback.of(name, arg).replace('/etcd-data', join(this.dir, name)));
    const env = { PATH: process.env.PATH, HOME: process.env.HOME };
    const child = spawn(process.env.CARILLON_ETCD_SERVER || binary, mapped, { stdio: 'ignore', env });
    ownChild(child);
    this.members.push(child);
  }

  /** A command of the image, whose entry point is the command line. */
  carillon(name: string, args = this.service(name).command ?? []): NodeProcess {
    return spawnNode(CLI, args, this.env(name));
  }

  /** An example's script as it is mounted, where `carillon` and `bullmq` can be imported. */
  example(name: string): NodeProcess {
    const { entrypoint = [], command = [], volumes = [] } = this.service(name);
    const [host = '', inside] = volumes[0]?.split(':') ?? [];
    expect(entrypoint).toEqual(['node', inside]);
    const script = join(this.dir, basename(host));
    copyFileSync(join(ROOT, host), script);
    for (const [id, target] of [
      ['carillon', join(dirname(dirname(CLI)), 'index.js')],
      ['bullmq', fileURLToPath(import.meta.resolve('bullmq'))],
    ] as const) {
      const folder = join(this.dir, 'node_modules', id);
      mkdirSync(folder, { recursive: true });
      writeFileSync(
        join(folder, 'package.json'),
        JSON.stringify({ name: id, type: 'module', exports: './index.js' }),
      );
      writeFileSync(join(folder, 'index.js'), `export * from ${JSON.stringify(target)};\n`);
    }
    return spawnNode(script, command, this.env(name));
  }

  async down(): Promise<void> {
    const processes = [this.producer, ...this.workers, ...this.schedulers];
    await Promise.all(processes.map((one) => one?.kill9()));
    for (const child of this.members) child.kill('SIGKILL');
    rmSync(this.dir, { recursive: true, force: true });
  }
}

let town: Town;

describe('every command of docker-compose.yml, run without Docker', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    town = await Town.build();
    for (const member of MEMBERS) town.startEtcd(member);
    const replicas = (name: string) => Array.from({ length: town.service(name).deploy?.replicas ?? 1 });
    town.schedulers = replicas('scheduler').map(() => town.carillon('scheduler'));
    town.workers = replicas('worker').map(() => town.example('worker'));
    town.producer = town.example('producer');
  }, 60_000);
  afterAll(() => town.down());

  test('Redis keeps what it is given', async () => {
    const redis = new Redis(town.redis.url);
    const settings = await redis
      .config('GET', 'appendonly', 'maxmemory-policy', 'appendfsync')
      .finally(() => redis.disconnect());
    expect(settings).toEqual(expect.arrayContaining(['yes', 'noeviction', 'everysec']));
    // Not ours, which start with the same settings: the file alone must say it.
    expect(town.service('redis').command).toEqual(
      expect.arrayContaining(['--appendonly', 'yes', '--maxmemory-policy', 'noeviction']),
    );
  });

  test('two schedulers share the work, two workers do it, and the producer is served', async () => {
    for (const scheduler of town.schedulers)
      await scheduler.waitForLine(/^scheduler of carillon serves /, 60_000);
    for (const worker of town.workers) await worker.waitForLine('working on emails, reports');
    await town.producer?.waitForLine('adding to emails; reports has a schedule');
    const ran = () => town.workers.flatMap(({ lines }) => lines.filter((line) => line.startsWith('{')));
    await eventually(() => ran().some((line) => line.includes('"greet"')), { timeout: 40_000 });
    await eventually(() => ran().some((line) => line.includes('"report"')), { timeout: 40_000 });
    expect(town.producer?.stderr).toBe('');
  });

  test('the health checks tell that all is well', async () => {
    const [, binary = '', ...ping] = town.service('redis').healthcheck?.test ?? [];
    const answer = execFileSync(binary, ['-p', String(town.redis.port), ...ping], { encoding: 'utf8' });
    expect(answer.trim()).toBe('PONG');
    const [, check = ''] =
      /HEALTHCHECK .*CMD \["carillon", (.*)\]/.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];
    const image = town.carillon('scheduler', JSON.parse(`[${check}]`) as string[]);
    expect(await image.exited).toEqual({ code: 0, signal: null });
    for (const member of MEMBERS) {
      expect(town.service(member).healthcheck?.test).toEqual(['CMD', 'etcdctl', 'endpoint', 'health']);
      const health = await fetch(`http://127.0.0.1:${town.loopback.port(`${member}:2379`)}/health`);
      expect(await health.json()).toMatchObject({ health: 'true' });
    }
  });

  test('the command line beside them finds nothing wrong', async () => {
    const doctor = town.carillon('carillon');
    expect(await doctor.exited, doctor.lines.join('\n')).toEqual({ code: 0, signal: null });
    expect(doctor.lines.join('\n')).toContain('led by etcd');
    const list = town.carillon('carillon', ['partitions', 'list', '--json']);
    await list.exited;
    const { partitions } = JSON.parse(list.lines.join('\n')) as { partitions: { state: string }[] };
    expect(partitions.map(({ state }) => state)).toEqual(Array(16).fill('led'));
  });

  test('told to stop, a scheduler hands over before it ends; the others end in order too', async () => {
    const [first] = town.schedulers;
    expect(await first?.stop()).toEqual({ code: 0, signal: null });
    await eventually(async () => {
      const list = town.carillon('carillon', ['instances', 'list', '--json']);
      await list.exited;
      const { instances } = JSON.parse(list.lines.join('\n')) as { instances: { partitions: number }[] };
      expect(instances.map(({ partitions }) => partitions)).toEqual([16]);
    });
    for (const one of [town.producer, ...town.workers, town.schedulers[1]]) {
      expect(await one?.stop()).toEqual({ code: 0, signal: null });
    }
  });
});
