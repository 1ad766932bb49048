import { bucketOf } from '../domain/buckets.js';
import type { DoctorContext } from './doctor-context.js';
import { replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';

const PAGE = 500;

/** A ledger goes with its schedule; one that stayed is read by nobody, and would be taken for a later schedule's. */
export async function checkLedgers(context: DoctorContext, identities: readonly string[]): Promise<void> {
  for (let from = 0; from < identities.length; from += PAGE) {
    const page = identities.slice(from, from + PAGE);
    for (const identity of await withoutSchedule(context, page)) {
      context.findings.suspect({
        async confirm(): Promise<Problem[]> {
          const { client, keys } = context;
          const subject = keys.ledger(identity);
          if ((await client.exists(subject)) === 0) return [];
          if ((await withoutSchedule(context, [identity])).length === 0) return [];
          const detail = 'there is no schedule of that name: nobody reads it';
          return [{ check: 'key', severity: 'warning', subject, detail }];
        },
      });
    }
  }
}

/** Those that are neither stored nor set aside. */
async function withoutSchedule(
  { client, keys }: DoctorContext,
  identities: readonly string[],
): Promise<string[]> {
  const pipeline = client.pipeline();
  for (const identity of identities) {
    const bucket = bucketOf(identity);
    pipeline.hexists(keys.jobs(bucket), identity).hexists(keys.quarantine(bucket), identity);
  }
  const found = replies(await pipeline.exec());
  return identities.filter((_, i) => found[i * 2] === 0 && found[i * 2 + 1] === 0);
}
