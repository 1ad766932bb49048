export { Job } from './client/job.js';
export type { JobOptions } from './client/job-options.js';
export type { BulkJob, QueueOptions } from './client/queue.js';
export { Queue } from './client/queue.js';
export { CarillonError, type ErrorCode, isCarillonError } from './domain/errors.js';
