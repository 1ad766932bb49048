import { expect, test } from 'vitest';
import { examine } from '../../src/client/doctor.js';
import { bucketOf } from '../../src/domain/buckets.js';
import { GateScripts } from '../../src/redis/gate-scripts.js';
import { aJob } from '../support/builders.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';

const BUCKET = bucketOf('q:a');
const MEMBER = Buffer.concat([Buffer.from([BUCKET]), Buffer.from('q:a')]);

async function held(task: { name: string }) {
  const spine = await Spine.virtual(task);
  await new GateScripts(spine.shard).set('q', { hold: true }, true);
  const owned = await spine.lead();
  await spine.submit('q', [aJob('a', { time: NOW, opts: '{"attempts":0,"group":"t"}' })]);
  const { namespace, prefix } = spine;
  const findings = async () => {
    const report = await examine(spine.client, { namespace, prefix, virtualClock: true }, { pause: 50 });
    return report.findings
      .filter(({ check }) => check !== 'leader')
      .map(({ check, detail }) => `${check} ${detail}`);
  };
  const sweep = () => spine.leader.sweepBucket(owned, BUCKET, '0', 100);
  return { spine, findings, sweep };
}

test('a held run that no index has is told, and the sweep puts it back', async ({ task }) => {
  const { spine, findings, sweep } = await held(task);
  await spine.client.zrem(spine.keys.gate('q', 't'), MEMBER);
  expect(await findings()).toEqual([
    `gate bucket ${BUCKET}: it is held, and ${spine.keys.gate('q', 't')} does not have it`,
  ]);
  expect((await sweep()).repaired).toEqual(['q:a']);
  await expectHealthy(spine);
});

test.each(['gateRing', 'gateHeads'] as const)(
  'a held run without a turn (%s) is told, and the sweep gives it one',
  async (key) => {
    const { spine, findings, sweep } = await held({ name: `turn ${key}` });
    await spine.client.del(key === 'gateRing' ? spine.keys.gateRing('q') : spine.keys.gateHeads);
    expect(await findings()).toEqual([
      `gate it is held, and its ${key === 'gateRing' ? 'tenant' : 'queue'} has no turn`,
    ]);
    expect((await sweep()).repaired).toEqual(['q:a']);
    await expectHealthy(spine);
  },
);

test('what an index has and no record is told, and goes with the next batch', async ({ task }) => {
  const { spine, findings } = await held(task);
  await spine.client.hdel(spine.keys.jobs(BUCKET), 'q:a');
  await spine.client.hset(spine.keys.queues, 'q:held', 0);
  expect(await findings()).toEqual([`gate ${spine.keys.gate('q', 't')} has it, and it is not held`]);
  const gates = new GateScripts(spine.shard);
  await gates.set('q', {}, true);
  const owned = await spine.lead(2);
  await gates.drain(owned, 'q', bucketOf('q'), { limit: 10, bytes: 1000 });
  await expectHealthy(spine);
});
