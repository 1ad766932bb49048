import { bucketOf } from '../domain/buckets.js';
import { lookAgain } from './doctor-bucket.js';
import type { DoctorContext } from './doctor-context.js';
import { replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';

/**
 * Holds schedules that follow others against what is known of these, both ways: the runs of a schedule that nobody
 * watches may be gone before their followers ask.
 * @param following identities of schedules that follow others.
 * @param followed those that have a set of followers.
 */
export async function checkFollowers(
  context: DoctorContext,
  following: readonly string[],
  followed: readonly string[],
): Promise<void> {
  const judges = [
    ...following.map((identity) => () => judgeFollower(context, identity)),
    ...followed.map((identity) => () => judgeFollowed(context, identity)),
  ];
  for (const confirm of judges) {
    if ((await confirm()).length > 0) context.findings.suspect({ confirm });
  }
}

async function followsOf(context: DoctorContext, identity: string): Promise<string[]> {
  const { record } = await lookAgain(context, bucketOf(identity), identity);
  return record?.kind === 'schedule' ? record.follows : [];
}

async function judgeFollower(context: DoctorContext, identity: string): Promise<Problem[]> {
  const { client, keys } = context;
  for (const parent of await followsOf(context, identity)) {
    const [member, watched] = replies(
      await client.multi().sismember(keys.followers(parent), identity).sismember(keys.watched, parent).exec(),
    ) as [number, number];
    if (member === 1 && watched === 1) continue;
    const detail = `it follows ${parent}, and that schedule’s runs are not watched`;
    return [{ check: 'parents', severity: 'error', subject: identity, detail }];
  }
  return [];
}

async function judgeFollowed(context: DoctorContext, identity: string): Promise<Problem[]> {
  for (const follower of await context.client.smembers(context.keys.followers(identity))) {
    if ((await followsOf(context, follower)).includes(identity)) continue;
    const detail = `${follower} is among its followers, and does not follow it`;
    return [{ check: 'parents', severity: 'error', subject: identity, detail }];
  }
  return [];
}
