import { parseFacts } from '../redis/worker-registry.js';
import type { DoctorContext } from './doctor-context.js';

/**
 * Where onDead is in use: queues whose runs are removed as they die, by their jobs or by their workers. Nobody is told of
 * those.
 * @param removing queue → some identities of such jobs and schedules.
 */
export async function checkUntold(
  { client, keys, findings }: DoctorContext,
  removing: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  if ((await client.exists(keys.deadSince)) === 0) return;
  const who = new Map([...removing].map(([queue, identities]) => [queue, [...identities]]));
  for (const text of await client.hvals(keys.workers)) {
    const facts = parseFacts(text);
    if (facts?.removesDead !== true) continue;
    who.set(facts.queue, [...(who.get(facts.queue) ?? []), `worker ${facts.id}`]);
  }
  for (const [queue, names] of [...who].sort()) {
    findings.add({
      check: 'untold',
      severity: 'warning',
      subject: queue,
      detail: `removeOnFail removes runs as they die, so that onDead is not told of them: ${names.join(', ')}`,
    });
  }
}
