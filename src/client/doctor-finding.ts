export type Severity = 'error' | 'warning';

/**
 * What `doctor` looks at. An error is a job that may not fire, may fire wrongly, or may be lost; a warning is
 * something that a person should know of.
 */
export const DOCTOR_CHECKS = {
  server: {
    holds: 'Redis keeps jobs: version 7 or later, noeviction, an append-only file, a master with memory left',
    todo: 'Change the server’s settings; managed services have them in their console.',
  },
  clock: {
    holds: 'the clock of this machine is within a second of Redis’',
    todo: 'Run a time service on both machines: BullMQ’s workers count backoff and stalls by their own clock.',
  },
  layout: {
    holds: 'the namespace has a layout, of this prefix and a format that this version writes',
    todo: 'Give the prefix and the namespace that its clients use; upgrade if another version made it.',
  },
  key: {
    holds: 'each key under the namespace’s tag is known and has its type',
    todo: 'Find who wrote it; rename it out of the namespace’s tag.',
  },
  record: {
    holds: 'each record can be read',
    todo: 'It is set aside when it is due: submit the job again, then `carillon quarantine discard` it.',
  },
  format: {
    holds: 'no record has a newer format than this version reads',
    todo: 'Upgrade this machine, and every scheduler, to the version that wrote it.',
  },
  place: {
    holds: 'each record stands in the bucket of its identity',
    todo: 'Nobody finds it there: submit the job again and remove the field from the hash.',
  },
  index: {
    holds: 'each record stands in exactly the indexes that its state names, with its fire time as score',
    todo: 'A running scheduler’s sweep repairs it; look again in a few hours, or edit the job to repair it now.',
  },
  dangling: {
    holds: 'each member of due, parked and plan has a record',
    todo: 'A running scheduler drops it when its time comes; nothing fires for it.',
  },
  ticks: {
    holds: 'a schedule’s ticks follow each other: last < cur < next, none fires before its scheduled time',
    todo: 'Upsert the schedule again with its definition.',
  },
  silent: {
    holds: 'each active schedule has a pending tick or is on plan',
    todo: 'A running scheduler’s sweep puts it on plan; an upsert does so now.',
  },
  definition: {
    holds: 'each active schedule’s definition can be planned by this version',
    todo: 'Upsert the schedule again with its definition.',
  },
  suspended: {
    holds: 'no schedule is suspended',
    todo: 'Read the note, mend the definition, then `carillon schedules resume`.',
  },
  heads: {
    holds: 'the heads show each bucket’s next timer in time',
    todo: 'The leader re-reads all heads each minute; timers of the bucket may be late until then.',
  },
  overdue: {
    holds: 'nothing that is due waits',
    todo: 'Start `carillon scheduler`; if one runs, ask it why it holds.',
  },
  leader: {
    holds: 'every bucket has a leader; standalone, its heartbeat is fresh',
    todo: 'Start `carillon scheduler`, or look at why it stopped.',
  },
  fence: {
    holds: 'every bucket’s fence is its leader’s',
    todo: 'Restart the scheduler: taking over raises the fences. A fence above every leader needs `fence adopt`.',
  },
  instances: {
    holds:
      'instances that share the work are fit, of one version, and configured to one number of partitions',
    todo: 'See `carillon instances list`; finish the rollout, or look at why the instance cannot work.',
  },
  counts: {
    holds: 'the counts of each queue agree with its records',
    todo: 'maxPending and getJobCounts judge by them: set the field of the queues hash to the number of records.',
  },
  counter: {
    holds: 'the counter of incarnations is at or above every record’s',
    todo: 'A failover lost writes: compare-and-set may meet an old version. Stop clients, then edit one job.',
  },
  dedup: {
    holds: 'each deduplication entry points at a pending job of its queue',
    todo: 'The next submit with this deduplication id drops it.',
  },
  quarantine: {
    holds: 'nothing is set aside',
    todo: 'Read the reason, then `carillon quarantine release` or `discard`.',
  },
  parked: {
    holds: 'parked records belong to a queue that is probed',
    todo: 'Nobody probes this queue, so they wait for ever: pause and resume each job.',
  },
  gate: {
    holds:
      'each held run stands in the index of its gate, in its tenant’s order, and that index holds nothing else',
    todo: 'The index sweep repairs it within hours; pausing and resuming the job does at once.',
  },
  parents: {
    holds:
      'each job that waits for others will be told of them: both know of each other, and the parent is looked at',
    todo: 'Promote or cancel the job that waits: nobody will release it.',
  },
  untold: {
    holds: 'nothing removes runs as they die, where onDead is to be told of them',
    todo: 'Give removeOnFail an age, a day say: a run that is gone is never told, nor listed by `carillon dead`.',
  },
  queue: {
    holds: 'no BullMQ queue has a key of the wrong type',
    todo: 'Find who wrote it, and delete or rename that key; the queue resumes by itself.',
  },
  orphan: {
    holds: 'each id in BullMQ’s wait and prioritized lists has its job',
    todo: 'A worker skips it: remove the id from the list.',
  },
} as const satisfies Record<string, { holds: string; todo: string }>;

export type DoctorCheck = keyof typeof DOCTOR_CHECKS;

export interface Finding {
  check: DoctorCheck;
  severity: Severity;
  /** What it is about: an identity, a key, a bucket, a queue. */
  subject: string;
  /** What was found. */
  detail: string;
  /** What to do. */
  todo: string;
}

/** A finding before it is told: the check's own todo is added. */
export interface Problem {
  check: DoctorCheck;
  severity: Severity;
  subject: string;
  detail: string;
}

/** Something that looked wrong in a live namespace: it is a finding only if a second look says so too. */
export interface Suspect {
  /** Looks again, by one atomic read where one will do; empty when all is well. */
  confirm(): Promise<Problem[]>;
}

/** Findings of one check beyond this are counted, not kept. */
const KEPT = 50;
/** Suspects beyond this are not looked at again: their number alone says enough. */
const MOST_SUSPECTS = 5000;

/** What one examination has found so far. */
export class Findings {
  readonly kept: Finding[] = [];
  readonly suspects: Suspect[] = [];
  /** All findings, kept or not. */
  readonly counts = new Map<DoctorCheck, { error: number; warning: number }>();
  suspectsDropped = 0;
  /** What could not be judged this time, as sentences. */
  readonly notes: string[] = [];

  add(problem: Problem): void {
    const count = this.counts.get(problem.check) ?? { error: 0, warning: 0 };
    count[problem.severity]++;
    this.counts.set(problem.check, count);
    if (count.error + count.warning <= KEPT)
      this.kept.push({ ...problem, todo: DOCTOR_CHECKS[problem.check].todo });
  }

  suspect(suspect: Suspect): void {
    if (this.suspects.length < MOST_SUSPECTS) this.suspects.push(suspect);
    else this.suspectsDropped++;
  }

  total(severity: Severity): number {
    let sum = 0;
    for (const count of this.counts.values()) sum += count[severity];
    return sum;
  }
}
