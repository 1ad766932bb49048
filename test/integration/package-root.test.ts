import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { compiled } from '../support/compiled.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCRIPT = compiled(join(ROOT, 'src', 'support', 'package-root.ts'));

test('node -e, which has a global __dirname of its own, finds the package folder', async () => {
  const code = `import(${JSON.stringify(pathToFileURL(SCRIPT).href)}).then(({ packageRoot }) => console.log(__dirname, packageRoot()))`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', code]);
  const [folder = '', root = ''] = stdout.trim().split(' ');
  expect(folder).toBe('.');
  expect(SCRIPT.startsWith(root)).toBe(true);
});
