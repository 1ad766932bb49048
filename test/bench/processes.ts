import { fileURLToPath } from 'node:url';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import type { WorkerReport } from './stock-worker.js';

/** Long, for a busy machine and a large herd. */
const PATIENCE = 600_000;

export async function startScheduler(url: string): Promise<NodeProcess> {
  const child = spawnNode(pathOf('scheduler-process.ts'), [url], { CARILLON_LOG_LEVEL: 'error' });
  await child.waitForLine('ready');
  return child;
}

/** @param between ms between the due times of two jobs that follow each other. */
export async function startWorker(url: string, jobs: number, between = 0) {
  const child = spawnNode(pathOf('stock-worker.ts'), [url, String(jobs), '0', String(between)]);
  await child.waitForLine('ready');
  return {
    /** When the first job is due, ms; told before it is. */
    setDue: (due: number) => child.writeLine(String(due)),
    report: async () => JSON.parse(await child.waitForLine(/^\{/, PATIENCE)) as WorkerReport,
    stop: () => child.stop(),
  };
}

function pathOf(script: string): string {
  return fileURLToPath(new URL(script, import.meta.url));
}
