import type { SchedulerOptions } from '../config/scheduler-options.js';
import { BenchProcess } from './bench-process.js';
import type { WorkerReport } from './stock-worker.js';

/** A scheduler, which leads, alone unless `options` say otherwise. */
export function startScheduler(url: string, options: SchedulerOptions = {}): Promise<BenchProcess> {
  return BenchProcess.start('scheduler-process', url, JSON.stringify(options));
}

/** @param between ms between the due times of two jobs that follow each other. */
export async function startWorker(url: string, jobs: number, between = 0) {
  const child = await BenchProcess.start('stock-worker', url, String(jobs), String(between));
  return {
    /** When the first job is due, ms; told before it is. */
    setDue: (due: number) => child.writeLine(String(due)),
    report: async () => JSON.parse(await child.line()) as WorkerReport,
    stop: () => child.stop(),
  };
}
