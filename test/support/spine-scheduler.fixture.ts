/**
 * A scheduler in a process of its own: `spine-scheduler.fixture.ts '<SchedulerOptions as JSON>'`. Standard output has
 * one line an event: what it logs, and its readiness whenever that changes. On standard input, `block <ms>` keeps its event
 * loop busy for so long, and `clock` makes it tell its wall clock.
 */
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import type { Logger, LogMethod } from '../../src/support/logger.js';

function say(level: string): LogMethod {
  return (fields: object | string, message?: string) => {
    const line = typeof fields === 'string' ? { message: fields } : { ...fields, message };
    process.stdout.write(`${JSON.stringify({ level, ...line })}\n`);
  };
}

const logger: Logger = {
  debug: () => undefined,
  info: say('info'),
  warn: say('warn'),
  error: say('error'),
  child: () => logger,
};

const scheduler = new Scheduler({ ...(JSON.parse(process.argv[2] ?? '{}') as SchedulerOptions), logger });
process.once('SIGTERM', () => {
  clearInterval(watch);
  void scheduler.stop().then(() => process.stdout.write('stopped\n'));
});
// It must not keep a scheduler alive that has stopped.
const input = process.stdin as typeof process.stdin & { unref?: () => void };
input.unref?.();
input.on('data', (line: Buffer) => {
  if (line.toString().startsWith('clock')) process.stdout.write(`${JSON.stringify({ wall: Date.now() })}\n`);
  const [, ms] = /^block (\d+)/.exec(line.toString()) ?? [];
  const until = performance.now() + Number(ms ?? 0);
  while (performance.now() < until);
});
await scheduler.start();
process.stdout.write('started\n');

let told = '';
const watch = setInterval(() => {
  const line = JSON.stringify({ readiness: scheduler.readiness() });
  if (line !== told) process.stdout.write(`${line}\n`);
  told = line;
}, 20);
