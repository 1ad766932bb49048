import { checkCall } from '../config/call-options.js';
import { checkObject, refuse } from '../config/check.js';
import { type DurabilityOptions, durabilityOf } from '../config/durability-options.js';
import type { MinimalQueue } from '../queue/bullmq.js';
import { Job } from '../queue/job.js';
import type { Durability } from '../redis/durability.js';
import type { SubmitItem, SubmitResult } from '../redis/submit-batch.js';
import type { Submitter } from '../redis/submitter.js';
import type { UnansweredJobs } from '../redis/unanswered-jobs.js';
import { jobIds } from './job-ids.js';
import type { JobOptions } from './job-options.js';
import { namedBy } from './named-refusal.js';
import { type JobLimits, prepareJob, refuseOfCall, withDefaults } from './prepare-job.js';
import { checkRequestId } from './request-ids.js';

/** One job of a bulk. */
export interface BulkJob<Name extends string, Data> {
  name: Name;
  data: Data;
  opts?: JobOptions;
}

/** Checks jobs, submits them, and makes BullMQ's Job of each answer. */
export class Producer<DataType, ResultType, NameType extends string> {
  readonly #newId = jobIds();

  /** @param defaults the queue's options of jobs that do not say otherwise, read at each call. */
  constructor(
    private readonly queue: MinimalQueue,
    private readonly submitter: Submitter,
    private readonly unanswered: UnansweredJobs,
    private readonly limits: JobLimits,
    private readonly defaults: () => JobOptions,
  ) {}

  async add(name: NameType, data: DataType, opts?: JobOptions): Promise<Job<DataType, ResultType, NameType>> {
    if (opts !== undefined) checkObject('opts', opts);
    const merged = withDefaults(this.defaults(), opts);
    const { requestId } = merged;
    const durability = durabilityOf(merged.durability);
    const item = prepareJob(name, data, merged, this.limits, this.#newId, requestId);
    const [result] = await this.#submit([item], requestId, durability);
    return this.#jobOf({ name, data, opts: merged }, item, result as SubmitResult);
  }

  /** @param context the span's, for jobs that carry none of their own. */
  async addBulk(
    jobs: readonly BulkJob<NameType, DataType>[],
    context: string | undefined,
    options: { requestId?: string; durability?: DurabilityOptions },
  ): Promise<Job<DataType, ResultType, NameType>[]> {
    checkCall(options, ['requestId', 'durability']);
    const { requestId, durability: asked } = options;
    if (requestId !== undefined) checkRequestId(requestId);
    const durability = durabilityOf(asked);
    if (!Array.isArray(jobs)) refuse('jobs', jobs, 'must be an array', 'Give [{ name, data, opts }, …].');
    const whole = jobs.map((job, index) => {
      checkObject(`jobs[${index}]`, job);
      const { name, data, opts } = job;
      if (opts !== undefined) checkObject(`jobs[${index}].opts`, opts);
      return { name, data, opts: withContext(withDefaults(this.defaults(), opts), context) };
    });
    const items = whole.map(({ name, data, opts }, index) =>
      namedBy(`jobs[${index}]`, () => {
        refuseOfCall(opts, 'addBulk(jobs');
        return prepareJob(name, data, opts, this.limits, this.#newId, requestId, index);
      }),
    );
    const results = await this.#submit(items, requestId, durability);
    return results.map((result, index) => {
      return this.#jobOf(whole[index] as (typeof whole)[0], items[index] as SubmitItem, result);
    });
  }

  #submit(
    items: readonly SubmitItem[],
    requestId: string | undefined,
    durability: Durability | undefined,
  ): Promise<SubmitResult[]> {
    return this.unanswered.hold(items, () => this.submitter.submit(items, requestId, durability));
  }

  #jobOf(
    { name, data, opts }: { name: NameType; data: DataType; opts: JobOptions },
    item: SubmitItem,
    result: SubmitResult,
  ): Job<DataType, ResultType, NameType> {
    const job = new Job<DataType, ResultType, NameType>(this.queue, name, data, opts, result.jobId);
    job.answer = result.answer;
    job.scheduledFor = result.scheduledFor;
    if (item.timestamp === undefined) job.timestamp = result.now;
    if (opts.at !== undefined) job.delay = Math.max(0, job.scheduledFor - job.timestamp);
    return job;
  }
}

/** BullMQ's rule: what the job says of its context wins over the span's. */
function withContext(opts: JobOptions, context: string | undefined): JobOptions {
  const own = opts.telemetry;
  if (context === undefined || own?.metadata !== undefined || own?.omitContext) return opts;
  return { ...opts, telemetry: { ...own, metadata: context } };
}
