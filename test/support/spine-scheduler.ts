import { onTestFinished } from 'vitest';
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import type { Logger, LogMethod } from '../../src/support/logger.js';
import { eventually } from './eventually.js';
import type { Spine } from './spine.js';

/** A scheduler in this process, serving a spine's namespace. Stops with the test. */
export async function startScheduler(spine: Spine, over: SchedulerOptions = {}): Promise<Scheduler> {
  const { url, namespace, prefix } = spine;
  const scheduler = new Scheduler({ redis: url, namespace, prefix, ...over });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  await eventually(() => scheduler.readiness().leading);
  return scheduler;
}

/** A logger that keeps its lines: `<level> <message> <fields as JSON>`. */
export class LineLogger implements Logger {
  readonly lines: string[] = [];
  readonly debug = this.#keep('debug');
  readonly info = this.#keep('info');
  readonly warn = this.#keep('warn');
  readonly error = this.#keep('error');

  child(): Logger {
    return this;
  }

  #keep(level: string): LogMethod {
    return (fields: object | string, message?: string) => {
      const line = typeof fields === 'string' ? fields : `${message} ${JSON.stringify(fields)}`;
      this.lines.push(`${level} ${line}`);
    };
  }
}
