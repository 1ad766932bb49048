import type { Redis } from 'ioredis';
import { type Layout, layoutHash } from '../redis/layout.js';
import { RECORD_FORMAT } from '../redis/record.js';
import { judgeServer, readServerFacts, type ServerFacts } from '../redis/server-check.js';
import type { DoctorContext } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';

/** ms that the clocks of two machines may differ. */
const CLOCK_SLACK = 1000;
/** Of maxmemory. */
const FULL = 0.95;
const CLOCK_PROBES = 5;

export interface ServerLook extends ServerFacts {
  /** Redis' clock minus this machine's, ms; what the way there took is taken out. */
  clockOffset: number;
}

/** The server's facts, and how far its clock is from ours. */
export async function checkServer({ client, findings }: DoctorContext): Promise<ServerLook> {
  const facts = await readServerFacts(client);
  for (const { sentence } of judgeServer(facts)) {
    findings.add({ check: 'server', severity: 'error', subject: 'redis', detail: sentence });
  }
  if (facts.role === 'slave') {
    const detail = 'this is a replica: what is written here is lost, and what is read may be old';
    findings.add({ check: 'server', severity: 'error', subject: 'redis', detail });
  }
  const memory = await client.info('memory');
  const [used, most] = [infoNumber(memory, 'used_memory'), infoNumber(memory, 'maxmemory')];
  if (most > 0 && used > most * FULL) {
    const detail = `${Math.round((used / most) * 100)} % of maxmemory is used: submits are refused when it is full`;
    findings.add({ check: 'server', severity: 'warning', subject: 'redis', detail });
  }
  const clockOffset = await measureOffset(client);
  for (const problem of judgeClock(clockOffset)) findings.add(problem);
  return { ...facts, clockOffset };
}

/** Pure. `offset`: Redis' clock minus this machine's, in ms. */
export function judgeClock(offset: number): Problem[] {
  if (Math.abs(offset) <= CLOCK_SLACK) return [];
  const detail = `Redis’ clock is ${Math.abs(offset)} ms ${offset > 0 ? 'ahead of' : 'behind'} this machine’s`;
  return [{ check: 'clock', severity: 'warning', subject: 'clock', detail }];
}

/** The quickest of a few round trips tells the offset best. */
async function measureOffset(client: Redis): Promise<number> {
  let best = { took: Number.POSITIVE_INFINITY, offset: 0 };
  for (let i = 0; i < CLOCK_PROBES; i++) {
    const before = Date.now();
    const now = await redisTime(client);
    const after = Date.now();
    if (after - before < best.took) best = { took: after - before, offset: now - (before + after) / 2 };
  }
  return Math.round(best.offset);
}

/** Redis' clock in whole ms. */
export async function redisTime(client: Redis): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

function infoNumber(info: string, name: string): number {
  return Number(info.match(new RegExp(`^${name}:(\\d+)`, 'm'))?.[1] ?? 0);
}

/** The namespace's layout against the prefix that was asked for, and the shard's hash of it. */
export async function checkLayout(context: DoctorContext): Promise<'present' | 'absent'> {
  const { client, keys, prefix, findings } = context;
  const stored = await client.get(keys.layout);
  const meta = await client.type(keys.meta);
  // Of the wrong type it is told of by another check.
  if (meta !== 'hash' && meta !== 'none') return 'present';
  const hash = await client.hget(keys.meta, 'layout');
  const say = (severity: Problem['severity'], subject: string, detail: string) =>
    findings.add({ check: 'layout', severity, subject, detail });
  if (stored === null) {
    if (hash !== null) say('error', keys.layout, 'it is missing, and the namespace holds data');
    else say('warning', keys.layout, `nothing was ever stored in the namespace ${keys.namespace}`);
    return hash === null ? 'absent' : 'present';
  }
  const layout = parseLayout(stored);
  if (layout === undefined) {
    say('error', keys.layout, `it cannot be read: ${stored.slice(0, 100)}`);
    return 'present';
  }
  if (layout.prefix !== prefix)
    say('error', keys.layout, `its prefix is ${layout.prefix}, ${prefix} was asked for`);
  if (layout.format > RECORD_FORMAT) {
    say('error', keys.layout, `its format is ${layout.format}, this version writes ${RECORD_FORMAT}`);
  }
  const wanted = layoutHash(layout);
  if (hash !== wanted)
    say('error', keys.meta, `its layout hash is ${hash ?? 'missing'}, the layout’s is ${wanted}`);
  return 'present';
}

function parseLayout(text: string): Layout | undefined {
  try {
    const { shards, format, prefix } = JSON.parse(text) as Partial<Layout>;
    if (typeof shards !== 'number' || typeof format !== 'number' || typeof prefix !== 'string')
      return undefined;
    return { shards, format, prefix };
  } catch {
    return undefined;
  }
}
