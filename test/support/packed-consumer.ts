import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { ownFolder } from './child-guard.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Read it by test/support/consumer.ts. */
    packed: Packed;
  }
}

type Packed = { tarball: string; consumer: string } | { failure: string };

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** Global set-up of the tests of the package: packs it and installs the tarball into an empty project, once a run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), 'carillon-package-'));
  ownFolder(dir);
  project.provide(
    'packed',
    await packInto(dir).catch((error: Error & { stderr?: string }) => ({
      failure: error.stderr || error.message,
    })),
  );
  return () => rm(dir, { recursive: true, force: true });
}

async function packInto(dir: string): Promise<Packed> {
  const consumer = join(dir, 'consumer');
  const [{ filename }] = JSON.parse(await npm(ROOT, 'pack', '--json', '--pack-destination', dir)) as [
    { filename: string },
  ];
  const tarball = join(dir, filename);
  await mkdir(consumer);
  await writeFile(join(consumer, 'package.json'), JSON.stringify({ name: 'consumer', private: true }));
  // What this repository was tested with is in npm's cache already.
  await npm(
    consumer,
    'install',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    tarball,
    await testedBullmq(),
  );
  return { tarball, consumer };
}

async function npm(cwd: string, ...args: string[]): Promise<string> {
  const { stdout } = await run('npm', args, { cwd, maxBuffer: 16 * 2 ** 20 });
  // The output of the build comes before the JSON.
  return stdout.slice(Math.max(stdout.search(/^\[/m), 0));
}

async function testedBullmq(): Promise<string> {
  const text = await readFile(join(ROOT, 'node_modules', 'bullmq', 'package.json'), 'utf8');
  return `bullmq@${(JSON.parse(text) as { version: string }).version}`;
}
