import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot, resolvePackageDir } from '../../../src/support/package-root.js';

test('the package root holds package.json and lua', () => {
  expect(JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')).name).toBe('carillon');
  expect(existsSync(join(packageRoot(), 'lua'))).toBe(true);
});

test('an installed package is found by name, also one whose exports hide its package.json', () => {
  expect(existsSync(join(resolvePackageDir('bullmq'), 'dist/cjs/commands'))).toBe(true);
  expect(JSON.parse(readFileSync(join(resolvePackageDir('commander'), 'package.json'), 'utf8')).name).toBe(
    'commander',
  );
});

test('a missing package is named with its cure', () => {
  let error: unknown;
  try {
    resolvePackageDir('no-such-package');
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toMatchObject({
    code: 'UNSUPPORTED',
    message: 'the package no-such-package is not installed beside carillon',
    todo: 'Run: npm install no-such-package',
  });
});
