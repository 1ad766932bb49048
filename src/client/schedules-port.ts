import type { CalendarStore } from '../redis/calendar-store.js';
import type { JobScripts } from '../redis/job-scripts.js';
import type { ScheduleScripts } from '../redis/schedule-scripts.js';
import type { UnansweredJobs } from '../redis/unanswered-jobs.js';
import type { EncodedTemplate } from './schedule-write.js';

/** What each run of a schedule is: BullMQ's name, data and options. */
export interface ScheduleTemplate<Data = unknown, Name extends string = string, Opts = unknown> {
  /** Defaults to the schedule's id. */
  name?: Name;
  /** Defaults to `{}`. */
  data?: Data;
  opts?: Opts;
}

/** What the schedules of a queue need of it. */
export interface SchedulesPort {
  readonly queueName: string;
  readonly jobs: JobScripts;
  readonly scripts: ScheduleScripts;
  readonly calendars: CalendarStore;
  /** Bounds the schedules that wait here to be stored. */
  readonly unanswered: UnansweredJobs;
  /** BullMQ's state of a run; `unknown` when it keeps it no more. */
  stateOf(runId: string): Promise<string>;
  /** What repeats of runs of this job name do, in words. */
  repeatsOf(name: string): Promise<string>;
  encodeTemplate(scheduleId: string, template: ScheduleTemplate): EncodedTemplate;
}
