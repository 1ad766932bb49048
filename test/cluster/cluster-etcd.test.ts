import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect } from 'vitest';
import { resolveEtcdOptions } from '../../src/config/etcd-options.js';
import { adoptFences } from '../../src/coordination/adopt-fences.js';
import { EtcdEpoch } from '../../src/coordination/etcd/epoch.js';
import { openEtcd } from '../../src/coordination/etcd/etcd-client.js';
import { EtcdKeys } from '../../src/coordination/etcd/etcd-keys.js';
import { FenceStore } from '../../src/redis/fence-store.js';
import type { EtcdMember } from '../../src/support/etcd-process.js';
import { ownFolder } from '../support/child-guard.js';
import { expectWithin, SPARE } from '../support/cluster.js';
import { type Fleet, TTL } from '../support/cluster-fleet.js';
import { cluster, fault } from '../support/cluster-of-file.js';
import { eventually } from '../support/eventually.js';

const LONG = process.env.CARILLON_LONG === '1';
/** ms; B27. */
const OUTAGES = LONG ? [8000, 30_000, 180_000] : [8000];

/** Faults of etcd, one after the other over one load, each judged at its end by `Cluster.undergoes`. */
let members: readonly EtcdMember[];
beforeAll(() => {
  members = cluster.etcd.members;
});

/** The longest that a job waited while `act` was done, in any fleet. */
async function worstLagDuring(act: () => Promise<void>): Promise<number> {
  const from = await cluster.now();
  await act();
  const to = await cluster.now();
  // The last of them have their turn.
  await cluster.passes(500);
  return Math.max(...(await Promise.all(cluster.fleets.map((fleet) => fleet.load.worstLag(from, to)))));
}

describe('I1 I2 I3 I5 etcd loses members', () => {
  fault('one member after the other dies, its leader among them: dispatch goes on', async () => {
    const leader = await cluster.etcdLeader();
    const follower = members.find((member) => member !== leader);
    for (const [what, member] of [
      ['leader', leader],
      ['follower', follower],
    ] as const) {
      const lag = await worstLagDuring(async () => {
        await member?.kill9();
        await cluster.passes(3000);
      });
      await member?.start();
      expectWithin(`lag without etcd’s ${what}`, lag, 1000);
    }
  });

  fault('its leader is frozen for two TTLs, and thaws', async () => {
    const leader = await cluster.etcdLeader();
    const lag = await worstLagDuring(async () => {
      leader.signal('SIGSTOP');
      await cluster.passes(2 * TTL);
      leader.signal('SIGCONT');
      // etcd 3.4.23 revokes leases that live within 1.3 s of the thaw.
      await cluster.passes(2000);
    });
    expectWithin('lag while etcd’s leader was frozen and thawed', lag, 2 * TTL + 2000);
  });

  for (const outage of OUTAGES) {
    fault(
      `B27 the majority is gone for ${outage / 1000} s: leaders stop by their deadline, and go on within TTL + 2 s of its return`,
      async () => {
        // Its leader among them: one that lost its majority answers keep-alives until it has seen that by itself.
        const leader = await cluster.etcdLeader();
        const gone = [leader, ...members.filter((member) => member !== leader).slice(0, 1)];
        await Promise.all(gone.map((member) => member.kill9()));
        const goneAt = performance.now();
        const deadline = (await cluster.now()) + TTL;
        await cluster.each((fleet) =>
          eventually(() => [0, 1, 2].every((place) => fleet.at(place).readiness?.leading === false)),
        );
        const accepted = cluster.fleets.map(({ load }) => load.accepted);
        await cluster.passes(goneAt + outage - performance.now());
        for (const [i, fleet] of cluster.fleets.entries()) {
          expect(fleet.load.accepted).toBeGreaterThan(accepted[i] ?? Number.NaN);
          const late = fleet.calls().filter(({ at, wrote }) => at > deadline && wrote.length > 0);
          expect(late).toEqual([]);
        }
        await Promise.all(gone.map((member) => member.start()));
        const backAt = performance.now();
        const seen = cluster.fleets.map((fleet) => fleet.calls().length);
        await Promise.all(cluster.fleets.map((fleet, i) => fleet.servedAgain(seen[i] ?? 0)));
        expectWithin('dispatch resumed after etcd’s return', performance.now() - backAt, TTL + 2000);
        await cluster.balanced();
        await expectOneLoopEach();
      },
      outage + 120_000,
    );
  }
});

describe('a scheduler that cannot take part', () => {
  fault(
    'B31 one member refuses it, one is silent, one’s answers are lost: it hands over nothing, and takes part once they hold',
    async () => {
      const [first, second, third] = cluster.links[SPARE]?.etcd ?? [];
      await first?.suspend();
      second?.pause();
      third?.lose('down');
      cluster.begin(SPARE);
      await cluster.passes(4000);
      for (const fleet of cluster.fleets) {
        expect(fleet.at(SPARE).node.running).toBe(true);
        expect(fleet.calls().filter(({ claims }) => isBy(fleet, SPARE, claims))).toEqual([]);
      }
      await Promise.all([first?.resume(), second?.resume(), third?.resume()]);
      await cluster.balanced();
      for (const fleet of cluster.fleets) expect(await fleet.bucketsOf(SPARE)).toHaveLength(64);

      const stopped = await handOver(SPARE);
      expectWithin('hand-over on SIGTERM', stopped, 500);
    },
  );
});

describe('etcd is rebuilt: dispatch stops until its fences are adopted', () => {
  fault('everything in it is wiped', async () => {
    await Promise.all(members.map((member) => member.kill9()));
    for (const { dir } of members) await emptied(dir);
    await Promise.all(members.map((member) => member.start()));
    await expectStoppedUntilAdopted();
  });

  fault('it is restored from a snapshot', async () => {
    const backup = await mkdtemp(join(tmpdir(), 'carillon-etcd-backup-'));
    ownFolder(backup);
    await Promise.all(members.map((member) => member.stop()));
    for (const [i, { dir }] of members.entries()) await cp(dir, join(backup, `${i}`), { recursive: true });
    await Promise.all(members.map((member) => member.start()));
    // All terms are new ones, and far from what the snapshot knows: etcd counts the writes of others, too.
    await Promise.all(Array.from({ length: 300 }, (_, i) => cluster.gateway.put(`/elsewhere/${i}`, 'x')));
    await cluster.each((fleet) => Promise.all([0, 1, 2].map((place) => fleet.at(place).node.kill9())));
    await Promise.all([0, 1, 2].map((place) => cluster.startInstance(place)));
    await cluster.ledBy([0, 1, 2]);

    await Promise.all(members.map((member) => member.kill9()));
    for (const [i, { dir }] of members.entries()) {
      await emptied(dir);
      await cp(join(backup, `${i}`), dir, { recursive: true });
    }
    await Promise.all(members.map((member) => member.start()));
    await expectStoppedUntilAdopted();
  });
});

/** ms from SIGTERM until the last bucket of a place has another leader. */
async function handOver(place: number): Promise<number> {
  const took = await Promise.all(
    cluster.fleets.map(async (fleet) => {
      const [before, mine] = await Promise.all([fleet.fences(), fleet.bucketsOf(place)]);
      const from = performance.now();
      const stopping = fleet.at(place).node.stop();
      await fleet.handedOver(mine, before);
      const ms = performance.now() - from;
      expect(await stopping).toEqual({ code: 0, signal: null });
      return ms;
    }),
  );
  return Math.max(...took);
}

/** No leader serves, each says why, and adopting the fences lets them go on. */
async function expectStoppedUntilAdopted(): Promise<void> {
  await cluster.each((fleet) =>
    eventually(
      () => {
        for (const place of [0, 1, 2]) {
          expect(fleet.at(place).readiness).toMatchObject({
            ready: false,
            reason: expect.stringMatching(/fence adopt/),
          });
        }
      },
      { timeout: 60_000 },
    ),
  );
  for (const fleet of cluster.fleets) await adopt(fleet);
  await cluster.balanced();
}

/** In a second of rest every bucket is claimed by one fence from one connection: one loop leads it. */
async function expectOneLoopEach(): Promise<void> {
  const seen = cluster.fleets.map((fleet) => fleet.calls().length);
  await cluster.passes(1500);
  for (const [i, fleet] of cluster.fleets.entries()) {
    const leaders = new Map<number, Set<string>>();
    for (const { script, client, claims } of fleet.calls().slice(seen[i])) {
      if (script !== 'pop-due') continue;
      for (const { first, last, fence } of claims) {
        for (let bucket = first; bucket <= last; bucket++) {
          leaders.set(bucket, (leaders.get(bucket) ?? new Set()).add(`${fence} ${client}`));
        }
      }
    }
    expect([...leaders.values()].filter((set) => set.size > 1)).toEqual([]);
    expect(leaders.size).toBe(256);
  }
}

function isBy(fleet: Fleet, place: number, claims: readonly { fence: string }[]): boolean {
  return claims.some(({ fence }) => fence.endsWith(`|${fleet.ids[place]}`));
}

async function emptied(dir: string): Promise<void> {
  await rm(join(dir, 'member'), { recursive: true, force: true });
}

/** As `carillon fence adopt` does. */
async function adopt(fleet: Fleet): Promise<void> {
  const client = openEtcd(resolveEtcdOptions({ hosts: cluster.etcd.hosts }));
  try {
    const source = new EtcdEpoch(client, new EtcdKeys(fleet.spine.namespace));
    // What it finds above its own fences meanwhile are those of leaders that go on.
    await adoptFences(source, new FenceStore(fleet.spine.shard), randomBytes(4).toString('hex'));
  } finally {
    client.close();
  }
}
