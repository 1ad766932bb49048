import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Hands the folder of the compiled sources on to the processes that run test files. */
export const COMPILED = 'CARILLON_TEST_COMPILED';

/** The compiled form of a script of the project; the script itself where there is none, which starts more slowly. */
export function compiled(script: string): string {
  const folder = process.env[COMPILED];
  if (folder === undefined || !script.endsWith('.ts')) return script;
  const path = join(folder, relative(ROOT, script).replace(/\.ts$/, '.js'));
  return existsSync(path) ? path : script;
}
