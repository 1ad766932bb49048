import { CarillonError, type ErrorCode, isCarillonError } from '../domain/errors.js';

/** One word; `field` is what was wrong, where that is not what was asked for. */
interface StatusError {
  code: ErrorCode;
  message: string;
  todo: string;
  field?: string;
  retryable?: boolean;
}

/** Which words a script may answer with besides its success, and the error each one is. */
const STATUS_ERRORS: Record<string, StatusError> = {
  WRONG_LAYOUT: {
    code: 'WRONG_LAYOUT',
    message: 'the namespace was laid out with other settings, or was deleted under a running client',
    todo: 'Use one prefix and one number of shards for all clients of a namespace; restart the client if it was recreated.',
  },
  NOT_FOUND: {
    code: 'NOT_FOUND',
    message: 'no pending job or schedule has this id',
    todo: 'Check queue and id.',
  },
  NOT_A_JOB: {
    code: 'UNSUPPORTED',
    message: 'the id belongs to a schedule, not to a one-time job',
    todo: 'Use queue.schedules for it.',
  },
  NOT_A_SCHEDULE: {
    code: 'UNSUPPORTED',
    message: 'the id belongs to a one-time job, not to a schedule',
    todo: 'Use the queue’s own methods for it.',
  },
  BACKLOG: {
    code: 'QUOTA',
    message: 'the schedule has as many open and waiting runs as it may have',
    todo: 'Wait until some have ended, or raise maxOpenRuns.',
    retryable: true,
  },
  NOT_WAITING: {
    code: 'CONFLICT',
    message: 'it does not wait for its time',
    todo: 'Resume it, or let it run.',
  },
  NOT_PAUSED: { code: 'CONFLICT', message: 'it is not paused', todo: 'Nothing needs to be done.' },
  IN_TURN: {
    code: 'UNSUPPORTED',
    message: 'it waits for its turn behind the open runs of its schedule, in the schedule’s own record',
    todo: 'Cancel it, or change the schedule.',
  },
  BEING_CANCELLED: {
    code: 'CONFLICT',
    message: 'its worker was asked to cancel it: that stands',
    todo: 'Add it again when it has ended.',
  },
  BAD_RECORD: {
    code: 'BAD_RECORD',
    message: 'its record cannot be read',
    todo: 'Run `carillon doctor`; the record is set aside, not lost.',
  },
  OUT_OF_RANGE: {
    code: 'INVALID_OPTION',
    message: 'the time lies outside 1970-01-01 to 9999-12-31',
    todo: 'Give an earlier time.',
  },
  PAST_DEADLINE: {
    code: 'INVALID_OPTION',
    message: 'the job would be due at its deadline or after it',
    todo: 'Give a later deadline, or an earlier time.',
    field: 'deadline',
  },
  ID_IN_USE: {
    code: 'ID_IN_USE',
    message: 'a schedule and a one-time job of one queue cannot share an id',
    todo: 'Give one of the two another id.',
  },
  ID_TAKEN: {
    code: 'ID_IN_USE',
    message: 'BullMQ holds another job under this id',
    todo: 'Remove that job from the queue, or use another id.',
  },
  QUEUE_BROKEN: {
    code: 'QUEUE_BROKEN',
    message: 'a key of the BullMQ queue has the wrong type',
    todo: 'Find who wrote it, and delete or rename that key; the queue resumes by itself.',
    retryable: true,
  },
  QUOTA: {
    code: 'QUOTA',
    message: 'the queue holds as many pending jobs as its maxPending allows',
    todo: 'Wait until some have fired, or raise maxPending.',
    retryable: true,
  },
  CONFLICT: {
    code: 'CONFLICT',
    message: 'somebody else changed it at the same time',
    todo: 'Read it again and repeat the change.',
    retryable: true,
  },
  STALE_RUN: {
    code: 'STALE_RUN',
    message: 'this worker does not hold the run any more: its lock ended, or a later attempt began',
    todo: 'Stop: what this attempt does from now on, another may do again.',
  },
  CYCLE: {
    code: 'CYCLE',
    message: 'the schedules would follow each other',
    todo: 'Leave one of them out of `after`.',
    field: 'after',
  },
  UNKNOWN_PARENT: {
    code: 'UNKNOWN_PARENT',
    message: 'nobody knows what it is to wait for; nothing was stored',
    todo: 'Add the parent first, or both by addGraph; check its queue and id.',
    field: 'after',
  },
  UNKNOWN_SCHEDULE: {
    code: 'UNKNOWN_PARENT',
    message: 'no schedule of this id is there to follow; nothing was stored',
    todo: 'Store the schedule that it follows first; check its id.',
    field: 'after',
  },
  PARENT_IS_SCHEDULE: {
    code: 'UNSUPPORTED',
    message: 'a job waits for a job or a run, not for a schedule',
    todo: 'Name the run, `<schedule>@<ms>`; schedules follow schedules by their own option `after`.',
    field: 'after',
  },
  PARENT_BUSY: {
    code: 'CONFLICT',
    message: 'an earlier job of the parent’s id has just ended, and its children are still being told',
    todo: 'Repeat the call.',
    field: 'after',
    retryable: true,
  },
  ACTIVE: {
    code: 'CONFLICT',
    message: 'a worker runs it: it has its name, data and options already',
    todo: 'Cancel or pause the run, or wait for its end.',
  },
  FINISHED: {
    code: 'CONFLICT',
    message: 'it has ended',
    todo: 'Nothing can be changed of it any more. To do the same again, add a job with another id.',
  },
  DEAD: {
    code: 'CONFLICT',
    message: 'it has ended: it is a dead letter',
    todo: 'Put it back into its queue by `carillon dead requeue` or queue.dead.requeue(id), or discard it there.',
  },
  STOCK_WORKER: {
    code: 'UNSUPPORTED',
    message: 'a plain BullMQ worker runs it, which hears nothing of this: it goes on to its end',
    todo: 'Run it by Carillon’s Worker, whose handlers get a signal.',
  },
  IN_FLOW: {
    code: 'UNSUPPORTED',
    message: 'it is a child of a BullMQ flow, whose parent waits for it',
    todo: 'Remove it by BullMQ’s job.remove(), which tells the parent.',
  },
  HAS_CHILDREN: {
    code: 'UNSUPPORTED',
    message: 'it waits for its children in a BullMQ flow, which would go on without it',
    todo: 'Remove it by BullMQ’s job.remove(), which removes them too, or end them first.',
  },
  FENCED: {
    code: 'FENCED',
    message: 'another instance leads this bucket now',
    todo: 'Nothing: this term has ended.',
  },
};

/** The error of a status word, with what the script added to it. */
export function statusError(status: string, detail?: string, field?: string): CarillonError {
  const entry = Object.hasOwn(STATUS_ERRORS, status) ? STATUS_ERRORS[status] : undefined;
  if (entry === undefined)
    return new CarillonError('BAD_SCRIPT', `a script answered the unknown status ${status}`);
  return new CarillonError(entry.code, detail ? `${entry.message} (${detail})` : entry.message, {
    todo: entry.todo,
    retryable: entry.retryable ?? false,
    ...((entry.field ?? field) === undefined ? {} : { field: entry.field ?? field }),
  });
}

/** Redis' own error words that hold a shard's dispatch: nothing is wrong with any record. */
const SERVER_WORDS = [
  'OOM', 'MISCONF', 'NOREPLICAS', 'READONLY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'MOVED', 'ASK', 'BUSY', 'UNKILLABLE',
] as const; // biome-ignore format: one list
export type ServerWord = (typeof SERVER_WORDS)[number];

/** The word by which Redis refuses for a reason of its own, or undefined. */
export function serverWord(error: unknown): ServerWord | undefined {
  if (!(error instanceof Error)) return undefined;
  return SERVER_WORDS.find(
    (word) => error.message.startsWith(`${word} `) || error.message.includes(`-${word} `),
  );
}

/** Turns what Redis or the connection threw into a CarillonError; the cause is kept. */
export function redisError(error: unknown): CarillonError {
  if (isCarillonError(error)) return error;
  const word = serverWord(error);
  const text = error instanceof Error ? error.message : String(error);
  if (word === 'OOM') {
    return new CarillonError('OUT_OF_MEMORY', 'Redis is at its maxmemory and refused the write', {
      todo: 'Raise maxmemory or remove finished jobs; nothing was written.',
      retryable: true,
      cause: error,
    });
  }
  const isLuaError = /user_script|Error running script|@user_script/.test(text) && word === undefined;
  return new CarillonError(isLuaError ? 'BAD_SCRIPT' : 'REDIS_UNAVAILABLE', `Redis: ${text}`, {
    todo: isLuaError
      ? 'This is a fault of Carillon: please report it.'
      : 'The call may have run: repeat it with the same id.',
    retryable: !isLuaError,
    cause: error,
  });
}
