import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { consumer, consumerNode } from '../support/consumer.js';

const JEST = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url));

test('Jest loads the package as it stands, without transform or option', () => {
  const project = consumer();
  writeFileSync(
    join(project, 'carillon.test.js'),
    `const { CarillonError, isCarillonError } = require('carillon');
     const { resolvePackageDir } = require('./node_modules/carillon/dist/cjs/support/package-root.js');
     test('an error has its code', () => {
       expect(isCarillonError(new CarillonError('QUOTA', 'too many'))).toBe(true);
     });
     test('the Lua of bullmq is found', () => {
       expect(resolvePackageDir('bullmq')).toMatch(/bullmq$/);
     });`,
  );
  const run = spawnSync(consumerNode(), [JEST, '--rootDir', project, '--no-cache'], {
    cwd: project,
    encoding: 'utf8',
  });
  expect(run.stderr).toContain('Tests:       2 passed, 2 total');
  expect(run.status).toBe(0);
});
