import { parseDuration } from '../domain/durations.js';
import { checkQueueName } from '../domain/ids.js';
import type { Durability } from '../redis/durability.js';
import type { Logger } from '../support/logger.js';
import { checkInteger, checkObject, refuse } from './check.js';
import { type DurabilityOptions, durabilityOf } from './durability-options.js';
import { checkName, checkPrefix, DUPLICATE_WINDOW } from './scheduler-options.js';
import { rejectUnknown } from './unknown-options.js';

/** What Carillon reads of a queue's options, besides BullMQ's own. */
export interface TimerOptions {
  /**
   * The namespace of the timers: all clients and schedulers of one BullMQ prefix share it. Defaults to `carillon` for
   * the prefix `bull`, else to `carillon-<prefix>`.
   */
  namespace?: string;
  /**
   * How long the id of a job that has run answers `fired` instead of making a new job: ms or a text such as `'10m'`.
   * 0 is BullMQ's own rule: the id is free as soon as the job's hash is gone. Defaults to `'1h'`, which is the most.
   */
  duplicateWindow?: number | string;
  /** The most jobs that may wait in this queue's timers; one more is refused with `QUOTA`. Defaults to no limit. */
  maxPending?: number;
  /** The largest payload in bytes of UTF-8, as JSON. Defaults to 1,048,576; the most is 16,000,000. */
  maxPayload?: number;
  /**
   * How many replicas must have a change before its call resolves, by Redis' WAIT; else it throws `NOT_DURABLE`, and
   * stands all the same. For jobs and schedules. Defaults to none.
   */
  durability?: DurabilityOptions;
  /** The most jobs that wait in this process while Redis is away; more throw `OFFLINE_FULL`. Defaults to 10,000. */
  offlineQueue?: number;
  /** Defaults to pino on standard error, level `CARILLON_LOG_LEVEL`. */
  logger?: Logger;
}

export interface ResolvedTimerOptions {
  readonly namespace: string | undefined;
  /** ms. */
  readonly duplicateWindow: number;
  /** 0 for no limit. */
  readonly maxPending: number;
  readonly maxPayload: number;
  readonly durability: Durability | undefined;
  readonly offlineQueue: number;
}

const OFFLINE_QUEUE = 10_000;
const MAX_PAYLOAD = 1_048_576;
/** A record holds the length of its payload in three bytes. */
const LARGEST_PAYLOAD = 16_000_000;

const TIMER_KEYS = [
  'namespace',
  'duplicateWindow',
  'maxPending',
  'maxPayload',
  'durability',
  'offlineQueue',
  'logger',
];
const BULLMQ_KEYS = [
  'connection', 'blockingConnection', 'skipVersionCheck', 'telemetry', 'skipWaitingForReady', 'prefix', 'defaultJobOptions',
  'streams', 'skipMetasUpdate', 'settings',
]; // biome-ignore format: one list
/** @nestjs/bullmq hands its own options on to the queue's class. */
const NEST_KEYS = ['name', 'configKey', 'processors', 'sharedConnection', 'forceDisconnectOnShutdown'];
const KNOWN = [...TIMER_KEYS, ...BULLMQ_KEYS, ...NEST_KEYS];

/**
 * Checks what a `Queue` was given, before anything is opened.
 * @throws CarillonError INVALID_ID, INVALID_OPTION, INVALID_DURATION
 */
export function resolveQueueOptions(name: unknown, options: unknown): ResolvedTimerOptions {
  checkQueueName(name, 'name');
  const given = checkObject('options', options);
  rejectUnknown(given, KNOWN);
  if (given.settings !== undefined && Object.keys(checkObject('settings', given.settings)).length > 0) {
    refuse(
      'settings',
      given.settings,
      'changes how BullMQ repeats jobs, which schedules do not use',
      'Leave it out; give the time zone and the pattern to queue.schedules.',
      'UNSUPPORTED',
    );
  }
  if (given.prefix !== undefined) checkPrefix(given.prefix);
  return Object.freeze({
    namespace: given.namespace === undefined ? undefined : checkName(given.namespace, 'namespace'),
    duplicateWindow:
      given.duplicateWindow === undefined
        ? DUPLICATE_WINDOW
        : parseDuration(given.duplicateWindow, { field: 'duplicateWindow', max: DUPLICATE_WINDOW }),
    maxPending:
      given.maxPending === undefined
        ? 0
        : checkInteger('maxPending', given.maxPending, 1, Number.MAX_SAFE_INTEGER),
    maxPayload:
      given.maxPayload === undefined
        ? MAX_PAYLOAD
        : checkInteger('maxPayload', given.maxPayload, 2, LARGEST_PAYLOAD),
    durability: durabilityOf(given.durability),
    offlineQueue: checkInteger(
      'offlineQueue',
      given.offlineQueue ?? OFFLINE_QUEUE,
      0,
      Number.MAX_SAFE_INTEGER,
    ),
  });
}
