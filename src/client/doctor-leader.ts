import { BUCKETS } from '../domain/buckets.js';
import { formatDuration } from '../domain/durations.js';
import type { DoctorContext } from './doctor-context.js';
import { numberOf, replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';

/** Who leads a standalone namespace, by its heartbeat. */
export interface Leader {
  /** Undefined when the leadership was given back, or never taken. */
  holder: string | undefined;
  token: number;
  epoch: string;
  /** ms since its last heartbeat; undefined without a holder. */
  beatAge: number | undefined;
  /** ms; a heartbeat older than this may be taken over. Undefined without a holder. */
  ttl: number | undefined;
}

/** A heartbeat may be late by this share of the TTL before its sender counts as gone. */
const LATE = 1.5;
/** Of a leader that did not tell its TTL: the scheduler's default, ms. */
const DEFAULT_TTL = 10_000;

const FIELDS = ['holder', 'token', 'beat', 'epoch', 'ttl'] as const;

/** Reads who leads; undefined when nobody ever did. `now` in ms of Redis' clock. */
export async function readLeader(
  { client, keys }: Pick<DoctorContext, 'client' | 'keys'>,
  now: number,
): Promise<Leader | undefined> {
  const [holder, token, beat, epoch, ttl] = await client.hmget(keys.leader, ...FIELDS);
  if (token === null || token === undefined) return undefined;
  return {
    holder: holder ?? undefined,
    token: Number(token),
    epoch: epoch ?? '',
    beatAge: holder && beat ? Math.max(0, now - Number(beat)) : undefined,
    ttl: holder && ttl ? Number(ttl) : undefined,
  };
}

export function isServed(context: DoctorContext, leader: Leader | undefined): boolean {
  // By etcd somebody leads, as far as can be known here; which buckets, `led` says.
  if (context.led !== undefined) return true;
  return leader?.beatAge !== undefined && leader.beatAge < staleAfter(context, leader.ttl);
}

function staleAfter(context: DoctorContext, ttl: number | undefined): number {
  return context.staleAfter ?? (ttl ?? DEFAULT_TTL) * LATE;
}

/** Whether somebody leads; without anything pending nobody need. */
export function judgeLeader(context: DoctorContext, leader: Leader | undefined, pending: number): Problem[] {
  if (isServed(context, leader) || pending === 0) return [];
  const detail =
    leader?.holder === undefined
      ? `nobody leads, and ${pending} timers are pending`
      : `${leader.holder} has given no heartbeat for ${formatDuration(Math.round(leader.beatAge ?? 0))}`;
  return [{ check: 'leader', severity: 'warning', subject: context.keys.leader, detail }];
}

/** Reads fences and leader at one instant and holds them against each other (I5). */
export async function checkFences(context: DoctorContext): Promise<void> {
  const first = await fenceProblems(context);
  if (first.length === 0) return;
  context.findings.suspect({ confirm: () => fenceProblems(context) });
}

async function fenceProblems(context: DoctorContext): Promise<Problem[]> {
  const { client, keys } = context;
  const [fences, told] = replies(
    await client
      .multi()
      .hgetall(keys.fence)
      .hmget(keys.leader, ...FIELDS)
      .exec(),
  ) as [Record<string, string>, (string | null)[]];
  const [holder, token, beat, epoch, ttl] = told;
  const now = await context.now();
  const served = holder && beat && now - Number(beat) < staleAfter(context, ttl ? Number(ttl) : undefined);
  const mine = served ? `${epoch}|${token}|${holder}` : undefined;
  const highest = token && epoch ? { number: Number.parseInt(epoch, 10), token: Number(token) } : undefined;
  return judgeFences(fences, mine, highest);
}

/**
 * Pure. `leader` is the fence text of the one who leads now, if anybody does; `highest` what was given out last, if
 * this namespace is coordinated here.
 */
export function judgeFences(
  fences: Readonly<Record<string, string>>,
  leader: string | undefined,
  highest: { number: number; token: number } | undefined,
): Problem[] {
  const problems: Problem[] = [];
  const say = (subject: string, detail: string) =>
    problems.push({ check: 'fence', severity: 'error', subject, detail });
  const texts = new Map<string, number>();
  for (const [field, fence] of Object.entries(fences)) {
    const isBucket = /^(0|[1-9]\d*)$/.test(field) && Number(field) < BUCKETS;
    if (!isBucket) {
      say(`field ${field}`, 'it is no bucket');
      continue;
    }
    const parts = /^(\d+)\|[^|]*\|(\d+)\|[^|]*$/.exec(fence);
    if (parts === null) say(`bucket ${field}`, `its fence ${JSON.stringify(fence)} cannot be read`);
    else if (highest !== undefined && isAbove(Number(parts[1]), Number(parts[2]), highest)) {
      say(`bucket ${field}`, `its fence ${fence} is above the highest token given out, ${highest.token}`);
    } else if (leader !== undefined && fence !== leader) {
      say(`bucket ${field}`, `its fence is ${fence}, the leader's ${leader}`);
    }
    texts.set(fence, (texts.get(fence) ?? 0) + 1);
  }
  const count = [...texts.values()].reduce((sum, n) => sum + n, 0);
  if (count < BUCKETS && (count > 0 || leader !== undefined)) {
    say(
      'fences',
      `${BUCKETS - count} buckets have none${leader === undefined ? '' : `, ${leader} leads them`}`,
    );
  }
  if (leader === undefined && texts.size > 1 && problems.length === 0) {
    say('fences', `they differ: ${[...texts.keys()].slice(0, 3).join(', ')}`);
  }
  return problems;
}

/** Fences are ordered by the number of their epoch, then by token. */
function isAbove(number: number, token: number, highest: { number: number; token: number }): boolean {
  return number > highest.number || (number === highest.number && token > highest.token);
}

/** The heads are promised for timers that are due within this: a minute's re-read and a horizon of two minutes (ms). */
const SHOWN = 30_000;

/** A bucket's first timer and first plan, in ms, as the walk saw them. */
export interface Earliest {
  bucket: number;
  due: number | undefined;
  plan: number | undefined;
}

/**
 * Heads later than the truth make timers late while somebody leads; whoever takes over re-reads them all first, so that
 * without a leader they say nothing.
 */
export async function checkHeads(
  context: DoctorContext,
  leader: Leader | undefined,
  earliest: readonly Earliest[],
): Promise<void> {
  const { client, keys, findings } = context;
  const heads = new Map<string, number>();
  let cursor = '0';
  do {
    const [next, list] = await client.zscan(keys.heads, cursor, 'COUNT', 1000);
    cursor = next;
    for (let i = 0; i < list.length; i += 2) heads.set(list[i] as string, Number(list[i + 1]));
  } while (cursor !== '0');
  for (const member of heads.keys()) {
    if (/^p?(0|[1-9]\d*)$/.test(member) && Number(member.replace('p', '')) < BUCKETS) continue;
    findings.add({
      check: 'heads',
      severity: 'error',
      subject: `heads ${member}`,
      detail: 'it is no bucket, and no script can read it',
    });
  }
  if (!isServed(context, leader)) return;
  const now = await context.now();
  for (const { bucket, due, plan } of earliest) {
    if (context.led?.(bucket) === false) continue;
    for (const [member, at] of [
      [String(bucket), due],
      [`p${bucket}`, plan],
    ] as const) {
      if (at === undefined || at > now + SHOWN || (heads.get(member) ?? Number.POSITIVE_INFINITY) <= at)
        continue;
      findings.suspect({ confirm: () => headProblems(context, bucket, member) });
    }
  }
}

async function headProblems(context: DoctorContext, bucket: number, member: string): Promise<Problem[]> {
  const { client, keys } = context;
  const index = member.startsWith('p') ? keys.plan(bucket) : keys.due(bucket);
  const [head, first] = replies(
    await client.multi().zscore(keys.heads, member).zrange(index, '0', '0', 'WITHSCORES').exec(),
  ) as [unknown, string[]];
  const shown = numberOf(head);
  const at = numberOf(first[1]);
  const now = await context.now();
  if (at === undefined || at > now + SHOWN || (shown !== undefined && shown <= at)) return [];
  const detail = `the next timer is due at ${at}, the heads ${shown === undefined ? 'show none' : `say ${shown}`}`;
  return [{ check: 'heads', severity: 'error', subject: `heads ${member}`, detail }];
}
