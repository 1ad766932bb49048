import type { GraphNode } from './graph.js';
import { identityOf } from './ids.js';
import type { StoredPolicies } from './schedule.js';

/** The identities of what a schedule of this queue follows. Pure. */
export function followedBy(queue: string, { after = [] }: Pick<StoredPolicies, 'after'>): string[] {
  return after.map((one) =>
    typeof one === 'string' ? identityOf(queue, one) : identityOf(one.queue, one.scheduleId),
  );
}

/** A schedule as a node among those that follow each other. Pure. */
export function followNode(queue: string, id: string, policies: Pick<StoredPolicies, 'after'>): GraphNode {
  return { identity: identityOf(queue, id), parents: followedBy(queue, policies) };
}
