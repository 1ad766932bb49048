/** What Carillon takes from BullMQ's package. Nothing outside src/queue imports bullmq itself. */
export {
  Job as BullJob,
  type JobJson,
  type JobProgress,
  type JobState,
  type JobsOptions,
  type JobType,
  type MinimalJob,
  type MinimalQueue,
  PRIORITY_LIMIT,
  Queue as BullQueue,
  QueueKeys,
  type QueueOptions as BullQueueOptions,
  RedisConnection,
  RedisQueueBackend,
  SpanKind,
  TelemetryAttributes,
} from 'bullmq';
