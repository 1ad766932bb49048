import { describe } from 'vitest';
import { expectWithin } from '../support/cluster.js';
import { TTL } from '../support/cluster-fleet.js';
import { cluster, fault } from '../support/cluster-of-file.js';
import { eventually } from '../support/eventually.js';

/**
 * Faults of scheduler processes, one after the other over one load: what each leaves behind is judged at its end by
 * `Cluster.undergoes`. All of them meet two fleets at once, one with the fence check and one without.
 */
describe('I1 I2 I3 I5 a leader that dies, sleeps or is cut off', () => {
  fault('kill -9: the others take over within TTL + 3 s, and dispatch all the while', async () => {
    const from = await cluster.now();
    const survivors = await Promise.all(
      cluster.fleets.map(async (fleet) => [...(await fleet.bucketsOf(1)), ...(await fleet.bucketsOf(2))]),
    );
    await cluster.each((fleet) => fleet.at(0).node.kill9());
    await cluster.othersTakeOver(0, TTL + 3000, 'take-over after kill -9');
    const to = await cluster.now();
    await cluster.startInstance(0);
    expectWithin('a new instance has its share', await cluster.balanced(), 6000);
    for (const [i, fleet] of cluster.fleets.entries()) {
      expectWithin('lag of the survivors’ buckets', await fleet.load.worstLag(from, to, survivors[i]), 1000);
    }
  });

  fault(
    'one is stopped by SIGSTOP and one’s event loop stands still, both for two TTLs: they lead no more when they wake',
    async () => {
      const woken = performance.now() + 2 * TTL;
      await cluster.each((fleet) => {
        fleet.at(1).node.sigstop();
        fleet.at(2).node.writeLine(`block ${2 * TTL}`);
      });
      expectWithin('take-over from two that stand still', await cluster.ledBy([0]), TTL + 3000);
      await eventually(() => performance.now() >= woken, { timeout: 2 * TTL });
      await cluster.each((fleet) => fleet.at(1).node.sigcont());
    },
  );

  fault('cut off from etcd: it stops by its own deadline', async () => {
    for (const proxy of cluster.links[0]?.etcd ?? []) proxy.pause();
    await cluster.othersTakeOver(0, TTL + 3000, 'take-over from one without etcd');
    await cluster.each((fleet) => eventually(() => fleet.at(0).readiness?.leading === false));
  });

  fault('cut off from Redis alone: it gives its partitions up within two TTLs', async () => {
    await cluster.links[1]?.redis.suspend();
    await cluster.othersTakeOver(1, 2 * TTL, 'take-over from one without Redis');
  });

  fault('its loop hangs while its keep-alives go on: scripts arrive, their answers do not', async () => {
    cluster.links[2]?.redis.pause('down');
    await cluster.othersTakeOver(2, 2 * TTL, 'take-over from a loop that hangs');
  });

  fault('cut off from both, and nothing that was under way arrives', async () => {
    const links = cluster.links[0];
    for (const proxy of [...(links?.etcd ?? []), links?.redis]) proxy?.lose();
    await cluster.othersTakeOver(0, 2 * TTL, 'take-over from one without anything');
  });

  fault('slow links that are reset again and again', async () => {
    const { redis, etcd } = cluster.links[1] ?? {};
    redis?.delay(40);
    for (const proxy of etcd ?? []) proxy.delay(20);
    for (let round = 0; round < 5; round++) {
      await cluster.passes(400);
      redis?.reset();
      for (const proxy of etcd ?? []) proxy.reset();
    }
    redis?.delay(0);
    for (const proxy of etcd ?? []) proxy.delay(0);
  });
});
