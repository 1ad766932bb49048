import { Queue as BullQueue, QueueEvents } from 'bullmq';
import { Queue, type QueueOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

/** A stock BullMQ queue and one of ours, each in a prefix of its own. */
export interface Twins {
  stock: BullQueue;
  ours: Queue;
}

/** Both close with the test. */
export async function twins(task: { name: string }, options: Partial<QueueOptions> = {}): Promise<Twins> {
  const prefix = namespaceFor(task);
  const { defaultJobOptions } = options;
  const stock = new BullQueue('q', {
    connection: connection(),
    prefix: `${prefix}-stock`,
    defaultJobOptions,
  });
  const ours = new Queue('q', { ...options, connection: sharedRedisUrl(), prefix: `${prefix}-ours` });
  onCleanup('stock queue', () => stock.close());
  onCleanup('our queue', () => ours.close());
  await Promise.all([stock.waitUntilReady(), ours.waitUntilReady()]);
  return { stock, ours };
}

/** BullMQ's options of a connection to the shared Redis. */
export function connection(): { host: string; port: number; db: number; maxRetriesPerRequest: null } {
  const { hostname, port, pathname } = new URL(sharedRedisUrl());
  return { host: hostname, port: Number(port), db: Number(pathname.slice(1)), maxRetriesPerRequest: null };
}

/** What both answer to the same calls; an error counts by its message. */
export async function answersOf<T>(
  { stock, ours }: Twins,
  act: (queue: BullQueue) => Promise<T>,
): Promise<{ stock: T | string; ours: T | string }> {
  return { stock: await outcome(act, stock), ours: await outcome(act, ours) };
}

async function outcome<T>(act: (queue: BullQueue) => Promise<T>, queue: BullQueue): Promise<T | string> {
  try {
    return await act(queue);
  } catch (error) {
    return `threw ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Collects the events of a queue from now on, in order. */
export async function eventsOf(queue: BullQueue): Promise<EventLog> {
  const events = new QueueEvents(queue.name, { connection: connection(), prefix: queue.opts.prefix });
  onCleanup('queue events', () => events.close());
  await events.waitUntilReady();
  const log = new EventLog();
  const emit = events.emit.bind(events);
  events.emit = (name: string | symbol, ...args: unknown[]) => {
    log.add(String(name), args[0]);
    return (emit as (name: string | symbol, ...args: unknown[]) => boolean)(name, ...args);
  };
  return log;
}

export class EventLog {
  readonly seen: { event: string; [field: string]: unknown }[] = [];

  add(event: string, fields: unknown): void {
    // BullMQ emits each event of a job a second time, as `completed:<id>`.
    if (event.includes(':') || typeof fields !== 'object' || fields === null) return;
    this.seen.push({ event, ...fields });
  }

  names(jobId: string): string[] {
    return this.seen.filter((entry) => entry.jobId === jobId).map((entry) => entry.event);
  }

  /** Resolves once an event of that name has come for the job. */
  async waitFor(event: string, jobId: string): Promise<void> {
    await eventually(() => this.names(jobId).includes(event));
  }
}
