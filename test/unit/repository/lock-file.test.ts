import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

// On a machine where everything is installed, nothing else would show that a new one cannot install it.
test('npm ci accepts package-lock.json', () => {
  const dir = mkdtempSync(join(tmpdir(), 'carillon-lock-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(ROOT, file), join(dir, file));
  const { stdout, stderr, status } = spawnSync(
    'npm',
    ['ci', '--dry-run', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'],
    { cwd: dir, encoding: 'utf8' },
  );
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('add bullmq ');
});

test('package-lock.json names no registry, so that it serves behind any mirror', () => {
  expect(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).not.toContain('"resolved": "http');
});
