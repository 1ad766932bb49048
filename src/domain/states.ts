/**
 * The states that a record in our tier may be in. One table for the codec, the scripts (lua/lib/record.lua repeats
 * the numbers), `doctor` and the docs: which index holds the record, and who moves it in and out.
 */
export interface StateRule {
  /** The number in the record's header. */
  readonly code: number;
  /** The index that holds the record's identity, besides the record itself. */
  readonly index: 'due' | 'parked' | 'gate' | 'none';
  readonly entered: string;
  readonly left: string;
  readonly kept: string;
}

export const STATES = {
  scheduled: {
    code: 1,
    index: 'due',
    entered: 'submit, reschedule, resume, a cured queue, a release from quarantine',
    left: 'pop-due when its fire time comes; cancel, pause, promote',
    kept: 'until it fires, or comes too late for its deadline',
  },
  paused: {
    code: 2,
    index: 'none',
    entered: 'a person pauses it, or a policy when a parent failed',
    left: 'resume, cancel, promote',
    kept: 'until somebody acts',
  },
  parked: {
    code: 3,
    index: 'parked',
    entered: 'pop-due or submit, when a key of its queue has the wrong type',
    left: 'the first good probe of the queue; cancel, pause',
    kept: 'until the queue is cured',
  },
  waiting: {
    code: 4,
    index: 'none',
    entered: 'submit with `after`, resume, while a parent has not ended',
    left: 'the outcome of its last parent, or a policy; cancel, pause, promote',
    kept: 'until all its parents have ended, or somebody acts',
  },
  held: {
    code: 5,
    index: 'gate',
    entered: 'pop-due or submit, when its time has come and its queue has a gate, or is on hold',
    left: 'drain-gate, as the gate’s limits allow; cancel, pause, promote, reschedule',
    kept: 'until the gate lets it through, or its deadline passes',
  },
  suspended: {
    code: 7,
    index: 'none',
    entered: 'Carillon, when a schedule cannot be planned; the note says why',
    left: 'resume, update, delete',
    kept: 'until somebody acts',
  },
  ended: {
    code: 9,
    index: 'none',
    entered: 'the planner, at a schedule’s endDate or limit',
    left: 'update, delete',
    kept: 'until it is deleted',
  },
} as const satisfies Record<string, StateRule>;

export type RecordState = keyof typeof STATES;

const BY_CODE = new Map(Object.entries(STATES).map(([name, rule]) => [rule.code, name as RecordState]));

/** The state behind a header's number, or undefined for a number that this version does not know. */
export function stateOf(code: number): RecordState | undefined {
  return BY_CODE.get(code as (typeof STATES)[RecordState]['code']);
}
