import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Etcd3 } from 'etcd3';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type EtcdClient, openEtcd } from '../../src/coordination/etcd/etcd-client.js';
import type { EtcdConnection } from '../../src/coordination/etcd/etcd-options.js';
import type { EtcdCluster } from '../../src/support/etcd-process.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { makeCertificates } from '../support/etcd-tls.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor } from '../support/namespace.js';

let one: EtcdCluster;

beforeAll(async () => {
  one = await startTestEtcd();
});

function open(hosts: readonly string[], over: Partial<EtcdConnection> = {}): EtcdClient {
  const client = openEtcd({ hosts, callTimeout: 800, ...over });
  onTestFinished(() => client.close());
  return client;
}

const put = (client: EtcdClient, key: string, value = 'v', lease?: string) =>
  client.txn({ if: [], success: [{ put: key, value, ...(lease === undefined ? {} : { lease }) }] });

describe('what is called', () => {
  test('a transaction judges create and mod revisions and answers with what it read', async ({ task }) => {
    const client = open(one.hosts);
    const key = `/${namespaceFor(task)}/k`;
    expect(await client.get(key)).toBeUndefined();
    const first = await client.txn({
      if: [{ key, createRevision: 0 }],
      success: [{ put: key, value: 'é' }, { get: key }],
    });
    expect(first).toMatchObject({
      succeeded: true,
      found: [{ key, value: 'é', createRevision: first.revision }],
    });
    const second = await client.txn({
      if: [{ key, createRevision: 0 }],
      success: [{ put: key, value: 'other' }],
      failure: [{ get: key }, { get: `${key}-absent` }],
    });
    expect(second).toMatchObject({ succeeded: false, found: [{ value: 'é', lease: '0' }, undefined] });
    const stale = { key, modRevision: first.revision };
    expect((await client.txn({ if: [stale], success: [{ put: key, value: '2' }] })).succeeded).toBe(true);
    expect((await client.txn({ if: [stale], success: [{ delete: key }] })).succeeded).toBe(false);
    expect(await client.get(key)).toMatchObject({ value: '2', createRevision: first.revision });
  });

  test('a range is the keys below a prefix and no neighbour', async ({ task }) => {
    const client = open(one.hosts);
    const name = namespaceFor(task);
    for (const key of [`/${name}/a`, `/${name}/b/c`, `/${name}0`, `/${name}`]) await put(client, key);
    const { keys, revision } = await client.range(`/${name}/`);
    expect(keys.map(({ key }) => key)).toEqual([`/${name}/a`, `/${name}/b/c`]);
    expect(revision).toBeGreaterThanOrEqual(keys[1]?.modRevision ?? Number.NaN);
  });

  test('a lease is granted, kept and revoked with its keys; an unknown one has no time left', async ({
    task,
  }) => {
    const client = open(one.hosts);
    const key = `/${namespaceFor(task)}/k`;
    const { id, ttl } = await client.grant(5);
    expect(ttl).toBe(5);
    await put(client, key, 'v', id);
    expect((await client.get(key))?.lease).toBe(id);
    expect(await client.keepAlive(id, 800)).toBe(5);
    await client.revoke(id);
    expect(await client.get(key)).toBeUndefined();
    expect(await client.keepAlive(id, 800)).toBe(0);
    await expect(put(client, key, 'v', id)).rejects.toMatchObject({ code: 'ETCD_UNAVAILABLE' });
  });

  test('a watch tells of changes below its prefix, also after its connection was cut', async ({ task }) => {
    const proxy = await FaultProxy.start({ port: Number(new URL(one.hosts[0] ?? '').port), protocol: 'raw' });
    const client = open([`http://127.0.0.1:${proxy.port}`]);
    const direct = open(one.hosts);
    const prefix = `/${namespaceFor(task)}/`;
    let heard = 0;
    const watch = client.watch(prefix, () => {
      heard += 1;
    });
    // The first message says that the watch stands.
    await eventually(() => heard > 0);
    let before = heard;
    await put(direct, `${prefix}a`);
    await eventually(() => heard > before);
    await proxy.suspend();
    await proxy.resume();
    before = heard;
    await eventually(() => heard > before);
    before = heard;
    await put(direct, `${prefix}b`);
    await eventually(() => heard > before);
    watch.cancel();
    before = heard;
    await put(direct, `${prefix}c`);
    await client.get(`${prefix}c`);
    expect(heard).toBe(before);
  });
});

describe('members that fail', () => {
  test('a frozen member costs one time-out, then the next is asked; a dead one costs nothing', async ({
    task,
  }) => {
    const cluster = await startTestEtcd({ members: 3 });
    const client = open(cluster.hosts);
    const key = `/${namespaceFor(task)}/k`;
    await put(client, key);
    cluster.members[0]?.signal('SIGSTOP');
    const started = performance.now();
    // The frozen one may have led: the others need a moment to elect.
    await eventually(async () => expect(await client.get(key)).toBeDefined(), { timeout: 15_000 });
    expect(performance.now() - started).toBeGreaterThan(700);
    const again = performance.now();
    await client.get(key);
    expect(performance.now() - again).toBeLessThan(700);
    cluster.members[0]?.signal('SIGCONT');
    await cluster.members[1]?.kill9();
    await eventually(async () => expect(await client.get(key)).toBeDefined(), { timeout: 15_000 });
  }, 60_000);

  test('a keep-alive asks one member, within its time, and the next call the next one', async () => {
    const cluster = await startTestEtcd({ members: 3 });
    const client = open(cluster.hosts);
    const { id } = await client.grant(20);
    cluster.members[0]?.signal('SIGSTOP');
    const started = performance.now();
    await expect(client.keepAlive(id, 300)).rejects.toMatchObject({ code: 'ETCD_UNAVAILABLE' });
    expect(performance.now() - started).toBeLessThan(2000);
    await eventually(async () => expect(await client.keepAlive(id, 1000)).toBe(20), { timeout: 15_000 });
  }, 60_000);

  test('nobody there: an error that says what to check, and calls after the return', async () => {
    const cluster = await startTestEtcd();
    const client = open(cluster.hosts);
    await client.get('/k');
    await cluster.members[0]?.kill9();
    await expect(client.get('/k')).rejects.toMatchObject({
      code: 'ETCD_UNAVAILABLE',
      retryable: true,
      todo: expect.stringContaining('Check'),
    });
    await cluster.members[0]?.restart();
    const back = performance.now();
    await eventually(async () => expect(await client.get('/k')).toBeUndefined());
    expect(performance.now() - back).toBeLessThan(3000);
  }, 60_000);
});

describe('closing', () => {
  test('300 times open, lease, watch, close: nothing stays open, memory does not grow', async ({ task }) => {
    const prefix = `/${namespaceFor(task)}/`;
    const cycle = async () => {
      const client = openEtcd({ hosts: one.hosts, callTimeout: 2000 });
      client.watch(prefix, () => undefined);
      const { id } = await client.grant(30);
      await put(client, `${prefix}k`, 'v', id);
      await client.keepAlive(id, 1000);
      await client.revoke(id);
      client.close();
    };
    for (let i = 0; i < 50; i++) await cycle();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 250; i++) await cycle();
    await eventually(() => openSockets() === 0);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(60 * 2 ** 20);
  }, 60_000);

  test('after close every call is refused, also one under way', async () => {
    const client = openEtcd({ hosts: one.hosts, callTimeout: 2000 });
    await client.get('/k');
    client.close();
    for (const call of [client.get('/k'), client.grant(5), client.keepAlive('1', 500), client.revoke('1')]) {
      await expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    }
  });

  test('a process that used it ends by itself', async () => {
    const script = `
      import { openEtcd } from './src/coordination/etcd/etcd-client.ts';
      const client = openEtcd({ hosts: ${JSON.stringify(one.hosts)}, callTimeout: 2000 });
      client.watch('/x/', () => undefined);
      const { id } = await client.grant(30);
      await client.keepAlive(id, 1000);
      client.close();
      console.log('closed');`;
    const run = promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '-e', script],
      {
        timeout: 20_000,
      },
    );
    expect((await run).stdout).toBe('closed\n');
  }, 30_000);
});

describe('who is let in', () => {
  test('mutual TLS: with our certificate; not without, nor with an authority of somebody else', async () => {
    const { ca, server, client: ours } = await makeCertificates();
    const settings = {
      'cert-file': server.cert,
      'key-file': server.key,
      'trusted-ca-file': ca,
      'client-cert-auth': 'true',
    };
    const { hosts } = await startTestEtcd({ settings });
    expect(hosts[0]).toMatch(/^https:/);
    const client = open(hosts, { tls: { ca, ...ours }, callTimeout: 5000 });
    await put(client, '/k');
    expect((await client.get('/k'))?.value).toBe('v');
    const { id } = await client.grant(5);
    expect(await client.keepAlive(id, 2000)).toBe(5);
    const refused = { code: 'ETCD_UNAVAILABLE' };
    await expect(open(hosts, { tls: { ca } }).get('/k')).rejects.toMatchObject(refused);
    await expect(open(hosts).get('/k')).rejects.toMatchObject(refused);
    expect(() => open(hosts, { tls: { ca: '/nowhere/ca.pem' } })).toThrow(/etcd.tls.ca cannot be read/);
  }, 60_000);

  test('user and password; a token that etcd forgot is drawn anew; nothing stays open', async () => {
    const cluster = await startTestEtcd();
    const root = new Etcd3({ hosts: cluster.hosts });
    await root.auth.userAdd({ name: 'root', password: 'secret' });
    await root
      .role('root')
      .create()
      .catch(() => undefined);
    await root.auth.userGrantRole({ user: 'root', role: 'root' });
    await root.auth.authEnable();
    root.close();
    const client = open(cluster.hosts, { username: 'root', password: 'secret', callTimeout: 3000 });
    await put(client, '/k');
    const { id } = await client.grant(5);
    expect(await client.keepAlive(id, 2000)).toBe(5);
    let heard = 0;
    client.watch('/', () => {
      heard += 1;
    });
    await eventually(() => heard > 0);
    // Tokens live in etcd's memory.
    await cluster.members[0]?.restart();
    await eventually(async () => expect((await client.get('/k'))?.value).toBe('v'));
    const before = heard;
    await eventually(async () => {
      await put(client, '/k2');
      expect(heard).toBeGreaterThan(before + 1);
    });
    const wrong = open(cluster.hosts, { username: 'root', password: 'wrong' });
    await expect(wrong.get('/k')).rejects.toMatchObject({ code: 'ETCD_UNAVAILABLE' });
    const nobody = open(cluster.hosts);
    await expect(nobody.get('/k')).rejects.toMatchObject({ code: 'ETCD_UNAVAILABLE' });
    for (const opened of [client, wrong, nobody]) opened.close();
    await eventually(() => openSockets() === 0);
  }, 60_000);
});

/** TCP connections of this process, but for those of its test runner. */
function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}
