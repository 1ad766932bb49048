/**
 * Pops without pause as a leader that never asks whether it still leads:
 * `spine-mover.fixture.ts '{"url", "namespace", "prefix", "choices", "token"}'`. One line a pop that moved something.
 */
import { Redis } from 'ioredis';
import { LeaderScripts } from '../../src/redis/leader-scripts.js';
import type { ScriptChoices } from '../../src/redis/script-source.js';
import { Shard } from '../../src/redis/shard.js';

interface MoverOptions {
  url: string;
  namespace: string;
  prefix: string;
  choices: ScriptChoices;
  token: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as MoverOptions;
const shard = new Shard(new Redis(options.url), options);
const leader = new LeaderScripts(shard);
const range = { first: 0, last: 255, servedFrom: 0, fence: `1|e|${options.token}|h${options.token}` };
await leader.takeOver([range]);
await leader.refreshHeads([range]);
process.stdout.write('moving\n');
for (;;) {
  const reply = await leader.popDue([range], { limit: 50, bytes: 1_000_000, prove: true });
  if ('popped' in reply && reply.popped > 0) process.stdout.write(`popped ${reply.popped}\n`);
}
