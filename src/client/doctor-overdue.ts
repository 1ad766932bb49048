import { formatDuration } from '../domain/durations.js';
import type { DoctorContext } from './doctor-context.js';
import { numberOf, replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';
import { type Earliest, isServed, readLeader } from './doctor-leader.js';

/** Late enough to ask why, ms. */
const LATE = 5000;
/** A backlog that is being worked off is worth a word when it is older than this, ms. */
const OLD_BACKLOG = 60_000;
const PARTS = ['due', 'plan'] as const;

interface Backlog {
  /** How much of it was due at `cutoff`. */
  count: number;
  /** ms of Redis' clock of the oldest. */
  oldest: number | undefined;
}

/** What is due and waits: nobody serves, somebody holds, or a herd is being worked off. */
export async function checkOverdue(context: DoctorContext, earliest: readonly Earliest[]): Promise<void> {
  const cutoff = (await context.now()) - LATE;
  for (const part of PARTS) {
    if (!earliest.some((bucket) => (bucket[part] ?? Number.POSITIVE_INFINITY) <= cutoff)) continue;
    const before = await readBacklog(context, part, cutoff);
    if (before.count === 0) continue;
    context.findings.suspect({
      async confirm() {
        const now = await context.now();
        const leader = await readLeader(context, now);
        const after = await readBacklog(context, part, cutoff);
        return judgeBacklog(part, before, after, now, isServed(context, leader));
      },
    });
  }
}

/** Pure. `served`: somebody leads now. */
export function judgeBacklog(
  part: (typeof PARTS)[number],
  before: Backlog,
  after: Backlog,
  now: number,
  served: boolean,
): Problem[] {
  if (after.count === 0 || after.oldest === undefined) return [];
  const late = now - after.oldest;
  const what = part === 'due' ? 'timers are' : 'schedules wait for their planner and are';
  const by = `${after.count} ${what} overdue by up to ${formatDuration(Math.max(0, Math.round(late)))}`;
  const say = (severity: Problem['severity'], detail: string): Problem[] => [
    { check: 'overdue', severity, subject: part, detail },
  ];
  if (!served) return say('error', `${by}, and nobody leads`);
  if (after.count >= before.count) return say('error', `${by}, and the leader moves none of them`);
  return late > OLD_BACKLOG ? say('warning', `${by}; the leader works them off`) : [];
}

async function readBacklog(
  { client, keys, buckets }: DoctorContext,
  part: (typeof PARTS)[number],
  cutoff: number,
): Promise<Backlog> {
  const pipeline = client.pipeline();
  for (const bucket of buckets) {
    pipeline.zcount(keys[part](bucket), '-inf', cutoff);
    pipeline.zrange(keys[part](bucket), '0', '0', 'WITHSCORES');
  }
  const list = replies(await pipeline.exec());
  const backlog: Backlog = { count: 0, oldest: undefined };
  for (let i = 0; i < list.length; i += 2) {
    backlog.count += Number(list[i]);
    const first = numberOf((list[i + 1] as string[])[1]);
    if (first !== undefined && (backlog.oldest === undefined || first < backlog.oldest))
      backlog.oldest = first;
  }
  return backlog;
}
