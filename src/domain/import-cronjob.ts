import { meetsClockChange } from './clock-changes.js';
import { refusalOf } from './cron-refusal.js';
import { formatDuration } from './durations.js';
import { isCarillonError } from './errors.js';
import type { Imported, ImportedSchedule } from './imported.js';
import { kubernetesSchedule } from './kubernetes-cron.js';
import {
  LONGEST_GRACE,
  LONGEST_RUN_TIMEOUT,
  LONGEST_TAG,
  MOST_TAGS,
  type OverlapPolicy,
  type ScheduleDefinition,
  SHORTEST_RUN_TIMEOUT,
} from './schedule.js';
import { checkTimeZone, spelledTimeZone } from './time-zone-names.js';

/** The job name of a CronJob's run: what a worker's handler is chosen by. */
export const CRONJOB_JOB = 'run-cron-job';
/** What stands before the namespace in a schedule's tags. */
export const NAMESPACE_TAG = 'namespace=';

const POLICIES: Readonly<Record<string, OverlapPolicy>> = {
  Allow: 'allow',
  Forbid: 'skip',
  Replace: 'cancelOther',
};
const SPEC_FIELDS = [
  'schedule',
  'timeZone',
  'startingDeadlineSeconds',
  'concurrencyPolicy',
  'suspend',
  'jobTemplate',
  'successfulJobsHistoryLimit',
  'failedJobsHistoryLimit',
];
/** Fields of a Job that have a meaning here; of the others each is listed. */
const JOB_FIELDS = new Set([
  'template',
  'backoffLimit',
  'activeDeadlineSeconds',
  'ttlSecondsAfterFinished',
  'parallelism',
  'completions',
]);
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** Kubernetes puts 11 characters behind it for each Job. */
const LONGEST_NAME = 52;
/** Kubernetes starts the last missed run however late; `catchupWindow` has no word for "for ever". */
const ANY_LATENESS = '3650d';
const CLOCK_CHANGE =
  'when clocks change, Kubernetes passes over a time that does not exist and runs one that comes twice twice; here each runs once (gap skip and fold both do as Kubernetes)';
const BACKOFF_MS = 10_000;
/** From the seventh retry on, 10 s doubled would pass Kubernetes' ceiling of six minutes. */
const RETRIES_UNDER_CEILING = 6;

/** How CronJobs become schedules. */
export interface CronJobImportOptions {
  /** The zone of a CronJob without `timeZone`, where Kubernetes reads its controller's. Defaults to `UTC`. */
  tz?: string;
  /** Ids are `namespace.name`, not the name alone, where a namespace is given. Defaults to false. */
  namespaceIds?: boolean;
  /** The changes of clocks after it count; ms. */
  now: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** Thrown inside, told as the reason outside. */
class Refusal extends Error {}

/**
 * Reads one Kubernetes object. A CronJob becomes a schedule whose runs carry its jobTemplate; one that the API server
 * would not take is refused. Undefined for objects of other kinds.
 */
export function importCronJob(
  manifest: unknown,
  line: number,
  options: CronJobImportOptions,
): Imported | undefined {
  if (typeof manifest !== 'object' || manifest === null) return undefined;
  const object = manifest as Fields;
  if (object.kind !== 'CronJob') return undefined;
  const metadata = isFields(object.metadata) ? object.metadata : {};
  try {
    return scheduleOf(object, metadata, line, options);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { name } = metadata;
    if (typeof name !== 'string')
      return { kind: 'refused', line, text: 'a CronJob without a name', reason: error.message };
    const ids = [idOf(name, metadata, options)];
    return { kind: 'refused', line, text: name, reason: error.message, ids };
  }
}

function scheduleOf(
  object: Fields,
  metadata: Fields,
  line: number,
  options: CronJobImportOptions,
): ImportedSchedule {
  const warnings: string[] = [];
  if (object.apiVersion === 'batch/v1beta1') {
    warnings.push('batch/v1beta1 is no longer served; its fields are those of batch/v1');
  } else if (object.apiVersion !== 'batch/v1') {
    throw new Refusal(`apiVersion: ${show(object.apiVersion)} has no CronJob; write batch/v1`);
  }
  const name = nameOf(metadata);
  const spec = fieldsAt(object.spec, 'spec');
  refuseUnknown(spec);
  const jobTemplate = fieldsAt(spec.jobTemplate, 'spec.jobTemplate');
  const job = fieldsAt(jobTemplate.spec, 'spec.jobTemplate.spec');
  const notTranslated = notTranslatedOf(job);
  const retries = count(job.backoffLimit, 'backoffLimit') ?? 6;
  if (retries > RETRIES_UNDER_CEILING) {
    notTranslated.push(
      `back-off ceiling: Kubernetes waits at most 6 minutes between tries, here each wait doubles`,
    );
  }
  const tags = tagsOf(metadata, notTranslated);
  if (metadata.annotations !== undefined) notTranslated.push('metadata.annotations: not kept');
  return {
    kind: 'schedule',
    line,
    id: idOf(name, metadata, options),
    definition: { ...definitionOf(spec, options, tags, warnings), ...timeoutOf(job) },
    template: {
      name: CRONJOB_JOB,
      data: { jobTemplate },
      opts: {
        attempts: retries + 1,
        ...(retries === 0 ? {} : { backoff: { type: 'exponential', delay: BACKOFF_MS } }),
        ...historyOf(spec, job),
      },
    },
    paused: flag(spec.suspend, 'spec.suspend'),
    notTranslated,
    warnings,
  };
}

function definitionOf(
  spec: Fields,
  { tz: defaultTz = 'UTC', now }: CronJobImportOptions,
  tags: readonly string[],
  warnings: string[],
): ScheduleDefinition {
  const text = textAt(spec.schedule, 'spec.schedule');
  const schedule = kubernetesSchedule(text);
  if ('refused' in schedule) throw new Refusal(`spec.schedule: ${schedule.refused}`);
  const { timing } = schedule;
  warnings.push(...schedule.warnings);
  const tz = spec.timeZone === undefined || spec.timeZone === null ? defaultTz : zoneOf(spec.timeZone);
  if ('cron' in timing && changesMatter(text, timing.cron, tz, now)) warnings.push(CLOCK_CHANGE);
  const policy = isUnset(spec.concurrencyPolicy) ? 'Allow' : spec.concurrencyPolicy;
  const overlap =
    typeof policy === 'string' && Object.hasOwn(POLICIES, policy) ? POLICIES[policy] : undefined;
  if (overlap === undefined) {
    throw new Refusal(
      `spec.concurrencyPolicy: ${show(policy)} is unknown (it is case sensitive); write Allow, Forbid or Replace`,
    );
  }
  if (policy === 'Forbid') {
    warnings.push(
      'Forbid: Kubernetes may start a held back run late, when the earlier one has ended; overlap skip drops it (bufferOne keeps it)',
    );
  }
  if (policy === 'Replace') {
    warnings.push('Replace: a run that a worker has fetched already is not stopped by plain BullMQ workers');
  }
  const deadline = count(
    spec.startingDeadlineSeconds,
    'spec.startingDeadlineSeconds',
    Number.MAX_SAFE_INTEGER / 1000,
  );
  if (deadline !== undefined && deadline < 10) {
    warnings.push(
      `startingDeadlineSeconds ${deadline}: Kubernetes, which looks every 10 s, may never start it; Carillon does`,
    );
  }
  return {
    ...timing,
    ...('cron' in timing || tz !== 'UTC' ? { tz } : {}),
    missed: 'latest',
    ...latenessOf(deadline),
    overlap,
    ...(tags.length === 0 ? {} : { tags }),
  };
}

function changesMatter(text: string, cron: string, tz: string, now: number): boolean {
  try {
    return meetsClockChange({ cron, tz }, now);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    throw new Refusal(refusalOf(error, cron, { text, option: 'spec.schedule' }));
  }
}

/** Labels, and the namespace: a CronJob of the same name in another one is another. The import adds a tag. */
function tagsOf({ namespace, labels }: Fields, notTranslated: string[]): string[] {
  const tags = isUnset(namespace) ? [] : [NAMESPACE_TAG + textAt(namespace, 'metadata.namespace')];
  for (const [key, value] of Object.entries(isFields(labels) ? labels : {})) {
    const tag = `${key}=${value}`;
    if (tag.length <= LONGEST_TAG && tags.length < MOST_TAGS - 1) tags.push(tag);
    else
      notTranslated.push(
        `label ${key}: a schedule has at most ${MOST_TAGS - 1} tags of ${LONGEST_TAG} characters`,
      );
  }
  return tags;
}

/** The newest missed tick runs if it is no later than the deadline, however it came to be missed. */
function latenessOf(deadline: number | undefined): Pick<ScheduleDefinition, 'grace' | 'catchupWindow'> {
  if (deadline === undefined) return { catchupWindow: ANY_LATENESS };
  const lateness = formatDuration(deadline * 1000);
  return deadline * 1000 > LONGEST_GRACE
    ? { catchupWindow: lateness }
    : { grace: lateness, catchupWindow: lateness };
}

/** A Job past its deadline is dead in Kubernetes: it holds up no later one. */
function timeoutOf(job: Fields): Pick<ScheduleDefinition, 'runTimeout'> {
  const deadline = count(job.activeDeadlineSeconds, 'activeDeadlineSeconds') ?? 0;
  const ms = deadline * 1000;
  return ms < SHORTEST_RUN_TIMEOUT || ms > LONGEST_RUN_TIMEOUT ? {} : { runTimeout: formatDuration(ms) };
}

function historyOf(spec: Fields, job: Fields): Record<string, unknown> {
  const ttl = count(job.ttlSecondsAfterFinished, 'ttlSecondsAfterFinished');
  const keep = (limit: number) => ({ count: limit, ...(ttl === undefined ? {} : { age: ttl }) });
  return {
    removeOnComplete: keep(count(spec.successfulJobsHistoryLimit, 'spec.successfulJobsHistoryLimit') ?? 3),
    removeOnFail: keep(count(spec.failedJobsHistoryLimit, 'spec.failedJobsHistoryLimit') ?? 1),
  };
}

function notTranslatedOf(job: Fields): string[] {
  const pod = fieldsAt(fieldsAt(job.template, 'spec.jobTemplate.spec.template').spec, 'the pod’s spec');
  const restart = pod.restartPolicy;
  if (restart !== 'Never' && restart !== 'OnFailure') {
    throw new Refusal(`restartPolicy: ${show(restart)} is refused for jobs; write OnFailure or Never`);
  }
  if (!Array.isArray(pod.containers) || pod.containers.length === 0) {
    throw new Refusal('containers: the pod has none');
  }
  const lost = [`restartPolicy ${restart}: a failed attempt is tried again as a whole, by attempts`];
  const deadline = count(job.activeDeadlineSeconds, 'activeDeadlineSeconds');
  if (deadline !== undefined) {
    lost.push(
      `activeDeadlineSeconds ${deadline}: no run is ended for its length; it only counts as ended (runTimeout)`,
    );
  }
  for (const field of ['parallelism', 'completions']) {
    const value = count(job[field], field) ?? 1;
    if (value !== 1) lost.push(`${field} ${value}: a tick is one run`);
  }
  for (const field of Object.keys(job)) {
    if (!JOB_FIELDS.has(field)) lost.push(`${field}: has no meaning here`);
  }
  return lost;
}

/** A namespace holds no dot: no two CronJobs share a `namespace.name`. */
function idOf(name: string, { namespace }: Fields, { namespaceIds = false }: CronJobImportOptions): string {
  return namespaceIds && typeof namespace === 'string' && namespace !== '' ? `${namespace}.${name}` : name;
}

function nameOf(metadata: Fields): string {
  const name = textAt(metadata.name, 'metadata.name');
  if (!NAME.test(name) || name.length > LONGEST_NAME) {
    throw new Refusal(
      `metadata.name: ${show(name)} is no name of a CronJob: at most ${LONGEST_NAME} of a-z, 0-9, - and .`,
    );
  }
  return name;
}

function zoneOf(value: unknown): string {
  const zone = textAt(value, 'spec.timeZone');
  try {
    checkTimeZone(zone, 'spec.timeZone');
  } catch (error) {
    if (isCarillonError(error)) throw new Refusal(error.message);
    throw error;
  }
  const name = spelledTimeZone(zone);
  if (name === zone) return zone;
  throw new Refusal(`spec.timeZone: ${show(zone)} is unknown (it is case sensitive); write ${name}`);
}

function refuseUnknown(spec: Fields): void {
  const unknown = Object.keys(spec).find((field) => !SPEC_FIELDS.includes(field));
  if (unknown === undefined) return;
  throw new Refusal(`spec.${unknown}: no such field of a CronJob; it has ${SPEC_FIELDS.join(', ')}`);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsAt(value: unknown, path: string): Fields {
  if (isFields(value)) return value;
  throw new Refusal(`${path}: ${value === undefined || value === null ? 'is missing' : 'must be an object'}`);
}

/** The API server gives an empty word of an optional field its default, as it does one that is not there. */
function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function textAt(value: unknown, path: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new Refusal(`${path}: ${value === undefined ? 'is missing' : `${show(value)} must be a text`}`);
}

/** A whole number from 0; Kubernetes takes 32 bits unless it says otherwise. */
function count(value: unknown, path: string, max = 0x7fffffff): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max)
    return value as number;
  throw new Refusal(`${path}: ${show(value)} must be a whole number, zero or more`);
}

function flag(value: unknown, path: string): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw new Refusal(`${path}: ${show(value)} must be true or false`);
}

function show(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
