import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { consumer, consumerNode, tarball } from '../support/consumer.js';

const BIN = fileURLToPath(new URL('../../node_modules/.bin/', import.meta.url));

function inTarball(file: string): boolean {
  return existsSync(join(consumer(), 'node_modules', 'carillon', file));
}

test('publint finds nothing', () => {
  const { status, stdout } = spawnSync(join(BIN, 'publint'), ['run', tarball(), '--strict'], {
    encoding: 'utf8',
  });
  expect(stdout).toContain('All good!');
  expect(status).toBe(0);
});

test('the types are right for each way of loading', () => {
  const { status, stdout } = spawnSync(join(BIN, 'attw'), [tarball(), '--format', 'json'], {
    encoding: 'utf8',
  });
  const { analysis, problems } = JSON.parse(stdout) as {
    analysis: { entrypoints: Record<string, { resolutions: Record<string, { resolution?: object }> }> };
    problems?: object;
  };
  expect(problems ?? {}).toEqual({});
  expect(status).toBe(0);
  const resolutions = Object.entries(analysis.entrypoints['.']?.resolutions ?? {});
  expect(resolutions.map(([name]) => name).sort()).toEqual(['bundler', 'node10', 'node16-cjs', 'node16-esm']);
  for (const [, { resolution }] of resolutions) expect(resolution).toBeDefined();
});

test('the tarball holds what is needed to run, and nothing else', () => {
  const needed = [
    'package.json',
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'lua',
    'dist/index.js',
    'dist/index.d.ts',
  ];
  expect(needed.filter((file) => !inTarball(file))).toEqual([]);
  expect(
    ['src', 'test', 'scripts', 'node_modules', 'dist/cjs/cli', 'dist/cjs/bench'].filter(inTarball),
  ).toEqual([]);
});

test('the pages that README.md links to are there, and the whole stays small', () => {
  const readme = readFileSync(join(consumer(), 'node_modules', 'carillon', 'README.md'), 'utf8');
  const pages = [...readme.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, page = '']) => page);
  expect(pages.length).toBeGreaterThan(10);
  expect(pages.filter((page) => !inTarball(page))).toEqual([]);
  expect(statSync(tarball()).size).toBeLessThan(1_200_000);
});

test('the command is installed, executable, and runs', () => {
  const command = join(consumer(), 'node_modules', '.bin', 'carillon');
  expect(statSync(command).mode & 0o111).toBe(0o111);
  const { status, stdout } = spawnSync(consumerNode(), [command, '--version'], { encoding: 'utf8' });
  expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+/);
  expect(status).toBe(0);
});

test('the command lists the benches, and finds the processes that they start', () => {
  const command = join(consumer(), 'node_modules', '.bin', 'carillon');
  const { status, stdout } = spawnSync(consumerNode(), [command, 'bench', '--help'], { encoding: 'utf8' });
  expect(status).toBe(0);
  for (const name of ['submit', 'memory', 'herd', 'steady']) {
    expect(stdout).toMatch(new RegExp(`^ {2}${name} .*rounds$`, 'm'));
  }
  expect(['dist/bench/stock-worker.js', 'dist/bench/scheduler-process.js'].filter(inTarball)).toHaveLength(2);
});
