import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readScript } from '../../src/redis/script-source.js';
import { ownFolder } from '../support/child-guard.js';
import { expectWithin } from '../support/cluster.js';
import { type Fleet, TTL } from '../support/cluster-fleet.js';
import { cluster, fault } from '../support/cluster-of-file.js';
import { eventually } from '../support/eventually.js';

/** Faults as in cluster-instances, that come from outside: late calls, hands in the stores, all at once, clocks. */
/** How a pop begins on the wire, with the fence check or without. */
const POP = new RegExp(
  (['on', 'off'] as const)
    .flatMap((fence) => Object.values(readScript('pop-due', { fence }).variants))
    .map(({ sha }) => sha)
    .join('|'),
);

describe('I5 a stale leader', () => {
  fault('stopped between its decision and its call: FENCED, and nothing changes', async () => {
    const before = await Promise.all(cluster.fleets.map((fleet) => fleet.fences()));
    const mine = await Promise.all(cluster.fleets.map((fleet) => fleet.bucketsOf(2)));
    const held = cluster.links[2]?.redis.hold(POP);
    await eventually(() => held?.requests === cluster.fleets.length);
    await cluster.each((fleet) => fleet.at(2).node.sigstop());
    // Sooner than its lease ends by itself: a call that is 5 s late fires nothing for the sake of the clock alone (I6).
    await cluster.each(async (fleet) => {
      const [member] = await keysOf(fleet, `members/${fleet.ids[2]}`);
      await cluster.gateway.revoke(member?.lease ?? '');
    });
    await cluster.othersTakeOver(2, 3000, 'take-over from one that is about to call');
    // The new leaders rest until there is something that the late call would move.
    await cluster.each((fleet) => [0, 1].map((place) => fleet.at(place).node.sigstop()));
    for (const [i, fleet] of cluster.fleets.entries()) {
      await eventually(async () => (await fleet.dueIn(mine[i] ?? [])) > 5);
    }
    const seen = cluster.fleets.map((fleet) => fleet.calls().length);
    await cluster.links[2]?.redis.resume();
    for (const [i, fleet] of cluster.fleets.entries()) {
      const late = await eventually(() => {
        const found = fleet
          .calls()
          .slice(seen[i])
          .filter((call) => isBy(fleet, 2, call.claims));
        return found.some(({ script }) => script === 'pop-due') && found;
      });
      if (fleet.fence === 'on')
        expect(late.flatMap(({ wrote, raised }) => [...wrote, ...raised])).toEqual([]);
    }
    await cluster.each((fleet) => [0, 1].map((place) => fleet.at(place).node.sigcont()));
    // The same call once more, to see its answer.
    const [fenced] = cluster.fleets;
    const owned = (mine[0] ?? []).map((bucket) => ({
      first: bucket,
      last: bucket,
      servedFrom: 0,
      fence: before[0]?.[bucket] ?? '',
    }));
    const answer = await fenced?.spine.pop(owned);
    expect(answer).toMatchObject({ popped: 0, lower: [] });
    expect(answer?.fenced.toSorted((a, b) => a - b)).toEqual(mine[0]);
    await cluster.each((fleet) => fleet.at(2).node.sigcont());
  });
});

describe('what happens behind a leader’s back', () => {
  fault('its lease is revoked, a partition’s key is deleted, its membership is deleted', async () => {
    await cluster.each(async (fleet) => {
      const [before, mine] = await Promise.all([fleet.fences(), fleet.bucketsOf(0)]);
      const [member] = await keysOf(fleet, `members/${fleet.ids[0]}`);
      await cluster.gateway.revoke(member?.lease ?? '');
      await fleet.handedOver(mine, before);
    });
    await cluster.each(async (fleet) => {
      const before = await fleet.fences();
      const [partition] = await keysOf(fleet, 'partitions/');
      const at = Number(partition?.key.split('/').at(-1));
      await cluster.gateway.delete(partition?.key ?? '');
      await fleet.handedOver(
        Array.from({ length: 16 }, (_, i) => at * 16 + i),
        before,
      );
    });
    await cluster.balanced();
    await cluster.each(async (fleet) => {
      const [before, mine] = await Promise.all([fleet.fences(), fleet.bucketsOf(1)]);
      await cluster.gateway.delete((await keysOf(fleet, `members/${fleet.ids[1]}`))[0]?.key ?? '');
      await fleet.handedOver(mine, before);
    });
  });
});

describe('all at once', () => {
  fault('every instance killed -9 at once, and started again', async () => {
    await cluster.each((fleet) => Promise.all([0, 1, 2].map((place) => fleet.at(place).node.kill9())));
    await Promise.all([0, 1, 2].map((place) => cluster.startInstance(place)));
    expectWithin('all partitions led after all were killed', await cluster.ledBy([0, 1, 2]), 2 * TTL + 2000);
  });

  fault('Redis unreachable for every instance: nothing moves', async () => {
    const before = await Promise.all(cluster.fleets.map((fleet) => fleet.fences()));
    for (const { redis } of cluster.links) await redis.suspend();
    await cluster.passes(2 * TTL + 1000);
    for (const { redis } of cluster.links) await redis.resume();
    const back = performance.now();
    await Promise.all(cluster.fleets.map((fleet) => fleet.servedAgain(fleet.calls().length)));
    expectWithin('served again after Redis was back', performance.now() - back, TTL + 2000);
    expect(await Promise.all(cluster.fleets.map((fleet) => fleet.fences()))).toEqual(before);
  });
});

/** Debian's name for it; others keep it elsewhere. */
const FAKETIME = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .concat('/usr/lib/faketime/libfaketime.so.1', '/usr/lib64/faketime/libfaketime.so.1')
  .find((path) => existsSync(path));

describe('I6 an instance’s wall clock', () => {
  test.skipIf(FAKETIME === undefined)(
    `leaps half a day, back and forth: nothing moves (${FAKETIME ?? 'skipped: install libfaketime, Debian’s package faketime'})`,
    () =>
      cluster.undergoes(async () => {
        const file = join(tmpdir(), `carillon-faketime-${randomUUID()}`);
        ownFolder(file);
        writeFileSync(file, '+0\n');
        await cluster.each((fleet) => fleet.at(2).node.stop());
        await cluster.startInstance(2, {
          LD_PRELOAD: FAKETIME,
          FAKETIME_TIMESTAMP_FILE: file,
          FAKETIME_NO_CACHE: '1',
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
        });
        await cluster.balanced();
        const before = await Promise.all(cluster.fleets.map((fleet) => fleet.fences()));
        for (const hours of [-12, 12, 0]) {
          writeFileSync(file, `${hours < 0 ? '' : '+'}${hours}h\n`);
          await cluster.each(async (fleet) => {
            const ahead = (await fleet.at(2).wall()) - Date.now();
            expect(Math.abs(ahead - hours * 3_600_000)).toBeLessThan(60_000);
          });
          await cluster.passes(1500);
        }
        expect(await Promise.all(cluster.fleets.map((fleet) => fleet.fences()))).toEqual(before);
      }),
    120_000,
  );
});

function isBy(fleet: Fleet, place: number, claims: readonly { fence: string }[]): boolean {
  return claims.some(({ fence }) => fence.endsWith(`|${fleet.ids[place]}`));
}

function keysOf(fleet: Fleet, name: string) {
  return cluster.gateway.range(`/carillon/${fleet.spine.namespace}/${name}`);
}
