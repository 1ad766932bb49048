export { Admin, type QueueSummary } from './client/admin.js';
export type { JobListOptions, ListedJob, ListOptions, Page, QuarantinedJob } from './client/admin-listing.js';
export type { AdminOptions } from './client/admin-options.js';
export type { CalendarChange, CalendarInfo, Calendars } from './client/calendars.js';
export type { DeadFilter, DeadLetter, DeadLetterDetails } from './client/dead-letter.js';
export type { DeadChange, RequeueEdit, RequeueOptions } from './client/dead-letters.js';
export type { DoctorOptions, DoctorReport } from './client/doctor.js';
export type { ClusterLook, ClusterMember, ClusterTerm } from './client/doctor-cluster.js';
export type { DoctorCheck, Finding, Severity } from './client/doctor-finding.js';
export type { LoadForecastOptions, TimersForecast } from './client/forecast.js';
export type { GateInfo, GateOptions, Gates, QueueGate, Rate } from './client/gates.js';
export type { AddedNode, GraphJob } from './client/graph.js';
export type { HistoryEntry, HistoryOptions } from './client/history.js';
export type { JobChange } from './client/job-change.js';
export type { ControlResult, EditOptions } from './client/job-control.js';
export type {
  ChangedJob,
  ChangedJobs,
  ChangeJobsOptions,
  JobVerb,
} from './client/job-control-many.js';
export type { JobFilter } from './client/job-filter.js';
export type { GraphNodeInfo } from './client/job-graph.js';
export type { JobOptions } from './client/job-options.js';
export type { ParentJob, ParentOptions } from './client/job-parents.js';
export type { BulkJob } from './client/producer.js';
export { Queue, type QueueOptions } from './client/queue.js';
export type {
  ScheduleDefinitionChange,
  ScheduleTemplateChange,
  UpdatedSchedule,
} from './client/schedule-change.js';
export type { ScheduleDescription, ScheduleRunRow } from './client/schedule-description.js';
export type { ScheduleFilter } from './client/schedule-filter.js';
export type { BackfillRange, ScheduleHandle } from './client/schedule-handle.js';
export type { ScheduleInfo, StoredSchedule } from './client/schedule-info.js';
export type { ChangedSchedule, ChangeManyOptions, ChangeVerb } from './client/schedules.js';
export type { ScheduleTemplate } from './client/schedules-port.js';
export type { DurabilityOptions } from './config/durability-options.js';
export type { SchedulerOptions } from './config/scheduler-options.js';
export type { CalendarDate, CalendarEntry } from './domain/calendar.js';
export { type CrontabLine, type CrontabOptions, parseCrontab } from './domain/crontab.js';
export type { DeadNotice, DeadReason, DeadReceiver } from './domain/dead-reason.js';
export type { Effects } from './domain/effects.js';
export { type BulkItem, CarillonError, type ErrorCode, isCarillonError } from './domain/errors.js';
export type { Exclusion, OnExcluded } from './domain/exclusions-definition.js';
export type { ExcludedTicks, ExplainedTick } from './domain/exclusions-explain.js';
export type { LoadForecast, QueueLoad } from './domain/forecast.js';
export type { Contributor, FlattenedPeak, Peak } from './domain/forecast-peaks.js';
export { nextFireTimes } from './domain/next-fire-times.js';
export type { PreviewedTime } from './domain/preview.js';
export type { ScheduleDefinition } from './domain/schedule.js';
export type { Difference as ScheduleDifference } from './domain/written-schedule.js';
export {
  claimEffect,
  type EffectTransaction,
  effectHeaders,
  effectsSql,
  type FencedUpdate,
  type RunIdentity,
  updateFenced,
} from './effects/effects.js';
export { Outbox, type OutboxOptions, type OutboxRow, type OutboxTransaction } from './outbox/outbox.js';
export { OutboxRelay, type RelayReport } from './outbox/relay.js';
export type { OutboxRelayOptions } from './outbox/relay-options.js';
export { outboxSql } from './outbox/table.js';
export { UnrecoverableError } from './queue/bullmq.js';
export { Job } from './queue/job.js';
export type { SubmitAnswer } from './redis/submit-batch.js';
export { Scheduler } from './scheduler/scheduler.js';
export type { Handler, HandlerOptions, Handlers } from './worker/handlers.js';
export type { Effect, OnceOptions, RedisCommand, Run } from './worker/run.js';
export { type Processor, Worker, type WorkerOptions } from './worker/worker.js';
