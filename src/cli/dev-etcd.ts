import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type EtcdCluster, startEtcd } from '../support/etcd-process.js';
import type { DevFolder } from './dev-folder.js';

/**
 * Starts etcd members of this folder's own on free ports. They begin empty: what etcd holds is who leads now, and nobody
 * leads before `carillon dev` runs.
 * @throws CarillonError UNSUPPORTED without an etcd, ETCD_UNAVAILABLE when one does not start
 */
export async function startDevEtcd(folder: DevFolder, members: number): Promise<EtcdCluster> {
  const { dir, pidFile } = placeOf(folder);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const pids: number[] = [];
  return startEtcd({
    dir,
    members,
    instead:
      'name another in CARILLON_ETCD_SERVER, or leave --etcd out: then one scheduler leads and others stand by.',
    onSpawn: ({ pid }) => {
      if (pid === undefined) return;
      pids.push(pid);
      writeFileSync(pidFile, JSON.stringify(pids));
    },
  });
}

/** Ends members of a `carillon dev` that was killed: known by pid, and by the folder in their command line. */
export async function endLeftOverEtcd(folder: DevFolder): Promise<void> {
  const { dir, pidFile } = placeOf(folder);
  for (const pid of readPids(pidFile)) {
    if (!(await commandLineOf(pid)).includes(`--data-dir=${dir}/`)) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

function placeOf({ path }: DevFolder): { dir: string; pidFile: string } {
  const dir = join(path, 'etcd');
  return { dir, pidFile: join(dir, 'pids.json') };
}

function readPids(file: string): number[] {
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Array.isArray(found)
      ? found.filter((pid): pid is number => Number.isSafeInteger(pid) && pid > 1)
      : [];
  } catch {
    return [];
  }
}

async function commandLineOf(pid: number): Promise<string> {
  try {
    return (await promisify(execFile)('ps', ['-p', String(pid), '-o', 'args='])).stdout;
  } catch {
    return '';
  }
}
