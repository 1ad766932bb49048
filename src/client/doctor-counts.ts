import { type BucketLook, lookAtBucket } from './doctor-bucket.js';
import type { DoctorContext } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';
import { countedAs } from './doctor-place.js';

const STATES = ['scheduled', 'paused', 'parked', 'waiting', 'held', 'schedules'] as const;
const PAGE = 1000;
/** The counts are read again after so many buckets: a queue whose counts moved is busy. */
const SAMPLE_EACH = 32;
/** A difference must be the same in so many walks. */
const WALKS = 3;

/** The fields of the queues hash: counts as numbers, and which queues are marked broken. */
export interface QueuesHash {
  counts: Map<string, number>;
  broken: Map<string, { since: number; reason: string }>;
  /** Fields that no part of Carillon writes. */
  unknown: string[];
}

/** Reads the queues hash in pages. */
export async function readQueues({
  client,
  keys,
}: Pick<DoctorContext, 'client' | 'keys'>): Promise<QueuesHash> {
  const found: QueuesHash = { counts: new Map(), broken: new Map(), unknown: [] };
  let cursor = '0';
  do {
    const [next, list] = await client.hscan(keys.queues, cursor, 'COUNT', PAGE);
    cursor = next;
    for (let i = 0; i < list.length; i += 2) {
      const [field, value] = [list[i] as string, list[i + 1] as string];
      const [queue = '', what = '', ...more] = field.split(':');
      if (queue !== '' && more.length === 0 && (STATES as readonly string[]).includes(what)) {
        found.counts.set(field, Number(value));
      } else if (queue !== '' && more.length === 0 && what === 'broken') {
        const bar = value.indexOf('|');
        found.broken.set(queue, { since: Number(value.slice(0, bar)), reason: value.slice(bar + 1) });
      } else found.unknown.push(field);
    }
  } while (cursor !== '0');
  return found;
}

/** Counts records as a walk meets them, and samples what Redis says of them meanwhile. */
export class Tally {
  readonly #seen = new Map<string, number>();
  /** Records that say no state, by queue: they may or may not be counted. */
  readonly #unsure = new Map<string, number>();
  readonly #samples: Map<string, number>[] = [];

  constructor(private readonly context: DoctorContext) {}

  async met(look: BucketLook): Promise<void> {
    if (look.bucket % SAMPLE_EACH === 0) await this.sample();
    for (const [identity, record] of look.records) {
      const queue = queueOf(identity);
      for (const state of countedAs(record)) this.#step(this.#seen, `${queue}:${state}`);
      if (record.kind === 'newer' || record.kind === 'unreadable') this.#step(this.#unsure, queue);
    }
  }

  /** To be called after the last bucket, too. */
  async sample(): Promise<void> {
    this.#samples.push((await readQueues(this.context)).counts);
  }

  /** Field → what is wrong; and the queues whose counts moved while they were walked. */
  differences(): { wrong: Map<string, string>; busy: Set<string> } {
    const wrong = new Map<string, string>();
    const busy = new Set<string>();
    const [first = new Map<string, number>(), ...later] = this.#samples;
    const fields = new Set([...this.#seen.keys(), ...this.#samples.flatMap((sample) => [...sample.keys()])]);
    for (const field of fields) {
      const queue = queueOf(field);
      const told = first.get(field) ?? 0;
      if (later.some((sample) => (sample.get(field) ?? 0) !== told)) busy.add(queue);
    }
    for (const field of fields) {
      const queue = queueOf(field);
      const told = first.get(field) ?? 0;
      if (told < 0 || !Number.isInteger(told)) wrong.set(field, `the count is ${told}`);
      if (busy.has(queue)) continue;
      const seen = this.#seen.get(field) ?? 0;
      const unsure = this.#unsure.get(queue) ?? 0;
      if (told < seen || told > seen + unsure)
        wrong.set(field, `the count is ${told}, the records are ${seen}`);
    }
    return { wrong, busy };
  }

  #step(map: Map<string, number>, key: string): void {
    map.set(key, (map.get(key) ?? 0) + 1);
  }
}

/**
 * The counts of a queue change with every job; so only a difference that stays exactly the same over several walks,
 * while the counts stood still, is one.
 */
export function suspectCounts(context: DoctorContext, first: Tally): void {
  const { wrong, busy } = first.differences();
  if (busy.size > 0) {
    context.findings.notes.push(
      `the counts of ${busy.size} busy queue(s) were not compared: ${[...busy].slice(0, 5).join(', ')}`,
    );
  }
  if (wrong.size === 0) return;
  context.findings.suspect({
    async confirm(): Promise<Problem[]> {
      for (let walk = 1; walk < WALKS && wrong.size > 0; walk++) {
        const tally = new Tally(context);
        for (const bucket of context.buckets) await tally.met(await lookAtBucket(context, bucket));
        await tally.sample();
        const again = tally.differences().wrong;
        for (const [field, detail] of wrong) if (again.get(field) !== detail) wrong.delete(field);
      }
      return [...wrong].map(([subject, detail]) => ({ check: 'counts', severity: 'error', subject, detail }));
    },
  });
}

function queueOf(identity: string): string {
  return identity.slice(0, Math.max(0, identity.indexOf(':')));
}
