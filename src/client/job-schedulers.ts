import { refuse } from '../config/check.js';
import { checkScheduleId, identityOf } from '../domain/ids.js';
import {
  fromJobSchedulerForm,
  type JobSchedulerJson,
  type JobSchedulerOptions,
  toJobSchedulerForm,
} from './job-scheduler-form.js';
import type { ScheduleInfo } from './schedule-info.js';
import type { Schedules } from './schedules.js';
import type { ScheduleTemplate } from './schedules-port.js';

/** BullMQ's Job Schedulers over our schedules: the same ids, the same getters, none of their chain. */
export class JobSchedulers {
  constructor(
    private readonly queueName: string,
    private readonly schedules: Schedules,
    private readonly hostZone: string,
  ) {}

  async upsert(id: string, options: JobSchedulerOptions, template: ScheduleTemplate): Promise<ScheduleInfo> {
    checkScheduleId(id, 'jobSchedulerId');
    const policies = fromJobSchedulerForm(options, identityOf(this.queueName, id), this.hostZone);
    const { endDate } = policies;
    const judge = (now: number) => {
      // BullMQ's own rule; a schedule of ours just ends.
      if (endDate !== undefined && endDate < now)
        refuse('endDate', options.endDate, 'has passed', 'Give a later one, or leave it out.');
    };
    return this.schedules.store(id, policies, template, { judge });
  }

  async get(id: string): Promise<JobSchedulerJson | undefined> {
    const info = await this.schedules.get(id).describe();
    return info && toJobSchedulerForm(info);
  }

  /** By the time of their next tick, as BullMQ gives them; both ends included, -1 is the last. */
  async list(start = 0, end = -1, asc = false): Promise<JobSchedulerJson[]> {
    const all: ScheduleInfo[] = [];
    for await (const info of this.schedules.list()) all.push(info);
    all.sort((a, b) => (a.next ?? 0) - (b.next ?? 0) || (a.id < b.id ? -1 : 1));
    if (!asc) all.reverse();
    return all.slice(start, end === -1 ? undefined : end + 1).map(toJobSchedulerForm);
  }

  remove(id: string): Promise<boolean> {
    return this.schedules.get(id).delete({ reason: 'removeJobScheduler' });
  }
}
