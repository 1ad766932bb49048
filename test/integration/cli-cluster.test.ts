import { beforeAll, describe, expect, test } from 'vitest';
import { BUCKETS } from '../../src/domain/buckets.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import type { EtcdCluster } from '../../src/support/etcd-process.js';
import { aJob } from '../support/builders.js';
import { EtcdState, startMember } from '../support/etcd-cluster.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { InProcessCli } from './cli-in-process.js';

let etcd: EtcdCluster;
beforeAll(async () => {
  etcd = await startTestEtcd();
}, 60_000);

interface Row {
  partition: number;
  of: number;
  first: number;
  last: number;
  state: string;
  leader: string | null;
  token: number | null;
  lag: number;
  pending: number;
}

/** For states that come and go while a process of the command line starts. */
const PATIENT = { timeout: 50_000, every: 0 };

/** A namespace that schedulers of this process share by etcd, and the command line in front of it. */
class Town {
  readonly cli: InProcessCli;
  readonly state: EtcdState;

  private constructor(readonly spine: Spine) {
    this.cli = new InProcessCli(spine.prefix);
    this.state = new EtcdState(etcd.hosts, spine.namespace);
  }

  static async of(task: { name: string }): Promise<Town> {
    const namespace = namespaceFor(task);
    return new Town(await Spine.open({ url: sharedRedisUrl(), namespace }));
  }

  /** A scheduler that takes part. */
  start(instanceId: string, partitions = 8) {
    return startMember(this.spine, etcd.hosts, instanceId, { partitions });
  }

  run(...args: string[]) {
    return this.cli.run('--namespace', this.spine.namespace, ...args, '--etcd', etcd.hosts.join(','));
  }

  async json<T>(...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await this.run(...args, '--json');
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as T;
  }

  async partitions(): Promise<Row[]> {
    return (await this.json<{ partitions: Row[] }>('partitions', 'list')).partitions;
  }

  /** Waits until every partition of the layout is led. */
  async led(count: number): Promise<Row[]> {
    return eventually(
      async () => {
        const rows = await this.partitions();
        expect(rows.map(({ state }) => state)).toEqual(Array(count).fill('led'));
        return rows;
      },
      { timeout: 20_000, every: 100 },
    );
  }
}

describe('partitions and instances', { timeout: 90_000 }, () => {
  test('list: who leads what, by which token, how late, and what each instance is', async ({ task }) => {
    const town = await Town.of(task);
    await Promise.all([town.start('east'), town.start('west')]);
    const rows = await town.led(8);
    expect(rows.map(({ first, last }) => last - first + 1)).toEqual(Array(8).fill(BUCKETS / 8));
    expect(new Set(rows.map(({ leader }) => leader))).toEqual(new Set(['east', 'west']));
    const fences = await town.spine.client.hgetall(town.spine.keys.fence);
    for (const { first, token, leader } of rows)
      expect(fences[first]).toMatch(new RegExp(`\\|${token}\\|${leader}$`));

    const { instances } = await town.json<{ instances: unknown[] }>('instances', 'list');
    expect(instances).toMatchObject([
      { instanceId: 'east', pid: process.pid, fit: true, draining: false, partitions: 4, configured: 8 },
      { instanceId: 'west', versions: { carillon: expect.any(String), bullmq: expect.any(String) } },
    ]);
    const table = (await town.run('partitions', 'list')).stdout.split('\n');
    expect(table[0]).toMatch(
      /^partition +buckets +state +leader +token +since +lag +pending +last hand-over$/,
    );
    expect(table[1]).toMatch(/^0\/8 +0-31 +led +(east|west) +\d+ /);
    expect((await town.run('instances', 'list')).stdout).toMatch(/^east .* yes +no +4 +8 +carillon /m);
  });

  test('list while a partition is handed over: never refused', async ({ task }) => {
    const town = await Town.of(task);
    await Promise.all([town.start('east', 1), town.start('west', 1)]);
    const [{ leader } = { leader: null }] = await town.led(1);
    const proxy = await FaultProxy.start({ port: Number(new URL(sharedRedisUrl()).port), protocol: 'raw' });
    proxy.pause();
    const listing = town.json<{ partitions: Row[] }>('partitions', 'list', '--redis', proxy.url);
    await eventually(() => expect(proxy.accepted).toBeGreaterThan(0));
    await town.state.put(town.state.keys.drain(leader ?? ''), { at: 'T' });
    await eventually(async () => {
      const fence = await town.spine.client.hget(town.spine.keys.fence, '0');
      expect(fence?.split('|')[3]).toBe(leader === 'east' ? 'west' : 'east');
    });
    await proxy.resume();
    expect((await listing).partitions).toMatchObject([{ state: 'led' }]);
  });

  test('scale pins a number against the configuration; --unpin lets it follow again', async ({ task }) => {
    const town = await Town.of(task);
    await Promise.all([town.start('east'), town.start('west')]);
    await town.led(8);
    expect((await town.run('partitions', 'scale', '4')).stdout).toBe(
      '8 → 4 partitions, pinned: configuration changes nothing until --unpin\n',
    );
    await town.led(4);
    expect((await town.run('partitions', 'list')).stderr).toBe('4 of 4 led; 4 partitions, pinned\n');
    expect(await town.json('partitions', 'scale', '--unpin')).toEqual({
      namespace: town.spine.namespace,
      before: { partitions: 4, pinned: true },
      after: { partitions: 4, pinned: false },
    });
    // Both are configured to eight.
    await town.led(8);
  });

  test('drain hands over before the instance is asked anything else; --undo gives it its share again', async ({
    task,
  }) => {
    const town = await Town.of(task);
    await Promise.all([town.start('east'), town.start('west')]);
    await town.led(8);
    const { stdout } = await town.run('instances', 'drain', 'east', '--note', 'new kernel');
    expect(stdout).toContain('east was asked to hand over');
    await eventually(async () => expect(await town.state.shares()).toEqual({ west: 8 }), { timeout: 15_000 });
    await town.led(8);
    const { instances } = await town.json<{ instances: object[] }>('instances', 'list');
    expect(instances[0]).toMatchObject({ draining: true, note: 'new kernel', partitions: 0 });
    await town.run('instances', 'drain', 'east', '--undo');
    await eventually(async () => expect(await town.state.shares()).toEqual({ east: 4, west: 4 }), {
      timeout: 15_000,
    });
  });

  test('the last one that could lead is not drained by a slip; an orderly end takes the order back', async ({
    task,
  }) => {
    const town = await Town.of(task);
    const east = await town.start('east');
    await town.led(8);
    expect((await town.run('instances', 'drain', 'east')).stderr).toBe(
      'error: nobody else could lead what east leads (CONFLICT). Start another instance first, or give --force.\n',
    );
    expect((await town.state.read()).drains).toEqual([]);
    expect((await town.run('instances', 'drain', 'east', '--force')).code).toBe(0);
    await eventually(async () => expect((await town.state.read()).partitions).toEqual([]), {
      timeout: 15_000,
    });
    await east.scheduler.stop();
    expect((await town.state.read()).drains).toEqual([]);
  });

  test.each([
    [{}],
    [[]],
    [1],
    [{ host: 'h', pid: 1, startedAt: 'x', partitions: 3, versions: null, fit: true, draining: false }],
  ])(
    'a member key that no instance wrote (%j) leads nothing, decides nothing, and is told',
    async (value) => {
      const town = await Town.of({ name: `nonsense ${JSON.stringify(value).slice(0, 8)}` });
      await town.state.put(town.state.keys.member('ghost'), value);
      await town.start('east');
      await town.led(8);
      for (const noun of ['instances', 'partitions']) {
        const { code, stdout, stderr } = await town.run(noun, 'list');
        expect({ code, ghost: stdout.includes('ghost') }).toEqual({ code: 0, ghost: false });
        expect(stderr).toContain(`the key ${town.state.keys.member('ghost')} in etcd cannot be read`);
      }
      expect((await town.json<{ instances: object[] }>('instances', 'list')).instances).toHaveLength(1);
    },
  );

  test('check is the exit code of an instance', async ({ task }) => {
    const town = await Town.of(task);
    await town.start('east');
    await town.led(8);
    expect(await town.run('instances', 'check')).toEqual({ code: 0, stdout: 'fit\n', stderr: '' });
    expect(await town.run('instances', 'check', 'west')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'error: west does not take part (NOT_FOUND). See its log.\n',
    });
  });

  test('check without etcd: whether a standalone scheduler leads', async ({ task }) => {
    const town = await Town.of(task);
    const { url, namespace, prefix } = town.spine;
    const check = () => town.cli.run('--namespace', namespace, 'instances', 'check');
    expect(await check()).toMatchObject({ code: 1, stderr: expect.stringContaining('no scheduler leads') });
    const scheduler = new Scheduler({ redis: url, namespace, prefix });
    await scheduler.start();
    expect(await check()).toEqual({ code: 0, stdout: 'fit\n', stderr: '' });
    await scheduler.stop();
    expect((await check()).code).toBe(1);
  });

  test('one clear line for what is wrong', async ({ task }) => {
    const town = await Town.of(task);
    const nobody = await town.run('partitions', 'list');
    expect(nobody).toMatchObject({ code: 1, stdout: '' });
    expect(nobody.stderr).toMatch(
      /^error: no scheduler has taken part in the namespace \S+ \(NOT_FOUND\)\. [^\n]+\n$/,
    );
    const unsaid = await town.cli.run('instances', 'list');
    expect(unsaid.code).toBe(2);
    expect(unsaid.stderr).toMatch(
      /^error: partitions and instances are etcd’s.* \(INVALID_OPTION\)\. Give --etcd /,
    );
    const dead = await town.cli.run('partitions', 'list', '--etcd', 'http://127.0.0.1:1');
    expect(dead.code).toBe(1);
    expect(dead.stderr).toMatch(/^error: [^\n]+ \(ETCD_UNAVAILABLE\)[^\n]*\n$/);
    await town.start('east');
    await town.led(8);
    expect((await town.run('partitions', 'scale', '257')).stderr).toContain('Give one from 1 to 256');
    expect((await town.run('partitions', 'scale')).code).toBe(2);
    expect((await town.run('instances', 'drain', 'eats')).stderr).toBe(
      'error: the instance eats does not take part (NOT_FOUND). Did you mean east?\n',
    );
    expect((await town.run('instances', 'drain', 'east', '--undo')).stderr).toContain(
      'was not asked to drain',
    );
  });
});

describe('fence adopt', { timeout: 90_000 }, () => {
  test('an etcd that was made anew leads after it, and nobody before', async ({ task }) => {
    const town = await Town.of(task);
    await town.start('east');
    await town.led(8);
    const { epoch } = await town.state.read();
    const before = await town.spine.client.hgetall(town.spine.keys.fence);
    // As after a restore to nothing: the fences in Redis are of an epoch that etcd does not know.
    await town.state.put(town.state.keys.epoch, { number: 1, id: 'deadbeef' });
    await eventually(
      async () => expect((await town.partitions()).some(({ state }) => state === 'refused')).toBe(true),
      {
        timeout: 15_000,
      },
    );
    expect((await town.run('fence', 'adopt')).stderr).toContain('so nobody can be asked');
    expect((await town.run('fence', 'adopt', '--dry-run')).stdout).toBe(
      'the fences of 256 buckets stand in the way; they would be raised to the epoch 2\n',
    );
    expect(await town.spine.client.hgetall(town.spine.keys.fence)).toEqual(before);
    const adopted = await town.run('fence', 'adopt', '--yes');
    expect(adopted.stdout).toMatch(/^adopted: epoch 2, id [0-9a-f]{8}; /);
    await town.led(8);
    const after = await town.state.read();
    expect(after.epoch?.number).toBe(2);
    expect(after.epoch?.id).not.toBe(epoch?.id);
    const again = await town.run('fence', 'adopt', '--yes', '--json');
    expect(JSON.parse(again.stdout)).toEqual({
      namespace: town.spine.namespace,
      adopted: false,
      epoch: null,
      inTheWay: 0,
      below: 0,
    });
  });

  test('back to standalone: without --etcd it is Redis’ own epoch that counts', async ({ task }) => {
    const town = await Town.of(task);
    const { scheduler } = await town.start('east');
    await town.led(8);
    await scheduler.stop();
    const outcome = await town.cli.run('--namespace', town.spine.namespace, 'fence', 'adopt', '--yes');
    expect(outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(/^adopted: epoch 2, /) });
    const fences = await town.spine.client.hvals(town.spine.keys.fence);
    expect(new Set(fences.map((fence) => fence.split('|')[0]))).toEqual(new Set(['2']));
    expect((await town.cli.run('--namespace', 'no-such-one', 'fence', 'adopt')).stderr).toContain(
      '(NOT_FOUND)',
    );
  });
});

describe('doctor --etcd', { timeout: 90_000 }, () => {
  interface Report {
    healthy: boolean;
    coordination: string;
    notes: string[];
    findings: { check: string; severity: string; subject: string; detail: string }[];
  }

  async function doctor(town: Town, ...args: string[]): Promise<Report> {
    const { stdout } = await town.cli.run(
      '--namespace',
      town.spine.namespace,
      'doctor',
      '--pause',
      '50ms',
      '--json',
      ...args,
    );
    return JSON.parse(stdout) as Report;
  }

  test('a cluster at work is healthy; without --etcd the same, with a note', async ({ task }) => {
    const town = await Town.of(task);
    await Promise.all([town.start('east'), town.start('west')]);
    await town.led(8);
    const report = await doctor(town, '--etcd', etcd.hosts.join(','));
    expect(report).toMatchObject({ healthy: true, coordination: 'etcd', notes: [] });
    expect(report.findings.filter(({ check }) => ['leader', 'fence', 'instances'].includes(check))).toEqual(
      [],
    );
    const blind = await doctor(town);
    expect(blind).toMatchObject({ healthy: true, coordination: 'etcd' });
    expect(blind.notes).toEqual([expect.stringContaining('--etcd')]);
  });

  test('finds partitions without a leader, another epoch, and mixed configurations', async ({ task }) => {
    const town = await Town.of(task);
    const east = await town.start('east', 8);
    await town.led(8);
    const west = await town.start('west', 4);
    await eventually(async () => expect((await town.state.read()).members).toHaveLength(2));
    await town.led(8);
    const mixed = await doctor(town, '--etcd', etcd.hosts.join(','));
    expect(mixed.findings).toContainEqual(
      expect.objectContaining({ check: 'instances', severity: 'warning', subject: 'partitions' }),
    );

    const { fence } = town.spine.keys;
    const [row] = await town.partitions();
    await town.spine.client.hset(fence, String(row?.first), `7|deadbeef|${row?.token}|${row?.leader}`);
    await eventually(async () => {
      const { findings } = await doctor(town, '--etcd', etcd.hosts.join(','));
      expect(findings).toContainEqual(
        expect.objectContaining({
          check: 'fence',
          severity: 'error',
          detail: expect.stringContaining('of another epoch'),
        }),
      );
    }, PATIENT);
    // Whoever is refused gives it back, and it is taken and refused again.
    await eventually(async () => expect((await town.partitions())[0]?.state).toBe('refused'), PATIENT);

    await town.spine.submit('q', [aJob('later', { time: Date.now() + 3_600_000 })]);
    await Promise.all([east.scheduler.stop(), west.scheduler.stop()]);
    const { healthy, findings } = await doctor(town, '--etcd', etcd.hosts.join(','));
    expect(healthy).toBe(false);
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: 'leader',
        severity: 'error',
        detail: 'buckets 0-255 have no leader; no instance takes part',
      }),
    );
    expect((await town.partitions()).map(({ state }) => state)).toEqual(Array(8).fill('leaderless'));
  }, 120_000);
});
