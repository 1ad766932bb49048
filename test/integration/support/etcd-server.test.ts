import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startEtcd } from '../../../src/support/etcd-process.js';
import { startTestEtcd } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';

test('three members are one cluster; one is killed, frozen and begun again on its data', async () => {
  const cluster = await startTestEtcd({ members: 3 });
  expect(new Set(cluster.hosts).size).toBe(3);
  const [first] = cluster.members;
  const healthy = async () => {
    const reply = await fetch(`${cluster.hosts[1]}/health`, { signal: AbortSignal.timeout(5000) });
    return ((await reply.json()) as { health: string }).health;
  };
  expect(await healthy()).toBe('true');
  await first?.kill9();
  expect(first?.running).toBe(false);
  // It may have led: the others elect another.
  await eventually(async () => expect(await healthy()).toBe('true'));
  await first?.restart();
  expect(first?.running).toBe(true);
  first?.signal('SIGSTOP');
  await first?.stop();
  expect(first?.running).toBe(false);
}, 60_000);

test('a member that ends by itself is told; one that is stopped is not', async () => {
  const cluster = await startTestEtcd();
  const [member] = cluster.members;
  process.kill(member?.pid ?? 0, 'SIGKILL');
  await expect(cluster.died).rejects.toMatchObject({ code: 'ETCD_UNAVAILABLE' });
  expect(existsSync(member?.dir ?? '')).toBe(true);
});

test('without an etcd: one clear line', async () => {
  process.env.CARILLON_ETCD_SERVER = '/nowhere/etcd';
  try {
    const starting = startEtcd({ dir: '/tmp', instead: 'or leave it.' });
    await expect(starting).rejects.toMatchObject({ code: 'UNSUPPORTED', field: 'CARILLON_ETCD_SERVER' });
  } finally {
    delete process.env.CARILLON_ETCD_SERVER;
  }
});
