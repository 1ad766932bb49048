import { bucketOf } from '../domain/buckets.js';
import { identityOf } from '../domain/ids.js';
import type { DoctorContext } from './doctor-context.js';
import { replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';
import { lookAtRecord } from './doctor-place.js';

const PAGE = 200;
/** >I7 inc, I6 expiry, B bucket, then the job's id. */
const HEADER = 14;

interface DedupEntry {
  inc: number;
  bucket: number;
  jobId: string;
}

/** Each entry of a queue's deduplication hash points at a pending job of that incarnation. */
export async function checkDedup(context: DoctorContext, queue: string): Promise<number> {
  const { client, keys, findings } = context;
  let seen = 0;
  let cursor = '0';
  do {
    const [next, list] = await client.hscanBuffer(keys.dedup(queue), cursor, 'COUNT', PAGE);
    cursor = String(next);
    const ids: string[] = [];
    const pipeline = client.pipeline();
    for (let i = 0; i < list.length; i += 2) {
      const entry = readEntry(list[i + 1] as Buffer);
      ids.push(String(list[i]));
      // Any hash will do for an entry that names no job: its field is not there either.
      pipeline.hgetBuffer(keys.jobs(entry?.bucket ?? 0), identityOf(queue, entry?.jobId ?? ''));
    }
    if (ids.length === 0) continue;
    const records = replies(await pipeline.exec()) as (Buffer | null)[];
    ids.forEach((id, k) => {
      seen++;
      const why = judgeEntry(queue, list[k * 2 + 1] as Buffer, records[k] ?? null);
      if (why !== undefined) findings.suspect({ confirm: () => lookAgain(context, queue, id) });
    });
  } while (cursor !== '0');
  return seen;
}

async function lookAgain(context: DoctorContext, queue: string, id: string): Promise<Problem[]> {
  const { client, keys } = context;
  const found = await client.hgetBuffer(keys.dedup(queue), id);
  if (found === null) return [];
  const entry = readEntry(found);
  const [bytes, record] = replies(
    await client
      .multi()
      .hgetBuffer(keys.dedup(queue), id)
      .hgetBuffer(keys.jobs(entry?.bucket ?? 0), identityOf(queue, entry?.jobId ?? ''))
      .exec(),
  ) as [Buffer | null, Buffer | null];
  if (bytes === null || !bytes.equals(found)) return [];
  const why = judgeEntry(queue, bytes, record);
  if (why === undefined) return [];
  return [{ check: 'dedup', severity: 'warning', subject: `${queue} ${JSON.stringify(id)}`, detail: why }];
}

/** Why the entry points at nothing that lives; undefined when it does. Pure. */
function judgeEntry(queue: string, bytes: Buffer, record: Buffer | null): string | undefined {
  const entry = readEntry(bytes);
  if (entry === undefined) return 'the entry cannot be read';
  const identity = identityOf(queue, entry.jobId);
  if (bucketOf(identity) !== entry.bucket)
    return `it names bucket ${entry.bucket}, ${identity} belongs to another`;
  if (record === null) return `it points at ${identity}, which is not pending`;
  const look = lookAtRecord(identity, record);
  if (look.kind === 'job' && look.inc !== entry.inc)
    return `it points at an earlier job of the id ${identity}`;
  return look.kind === 'schedule' ? `it points at the schedule ${identity}` : undefined;
}

function readEntry(bytes: Buffer): DedupEntry | undefined {
  if (bytes.length <= HEADER) return undefined;
  return {
    inc: bytes.readUIntBE(0, 3) * 0x100000000 + bytes.readUInt32BE(3),
    bucket: bytes.readUInt8(13),
    jobId: bytes.toString('utf8', HEADER),
  };
}
