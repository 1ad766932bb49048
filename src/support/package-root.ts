import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CarillonError } from '../domain/errors.js';

const OWN_NAME = 'carillon';

let root: string | undefined;

/**
 * The folder of the package that this code belongs to, where `lua/` and `package.json` lie. The same answer from the
 * sources, from the ESM build and from the CommonJS build, whatever their depth.
 *
 * @throws CarillonError `UNSUPPORTED` when no folder above this file is Carillon's, as when an application's bundler swallowed it.
 */
export function packageRoot(): string {
  root ??= findPackage(OWN_NAME, ownFolder());
  if (root === undefined) {
    throw new CarillonError(
      'UNSUPPORTED',
      `carillon cannot find its own package folder above ${ownFolder()}`,
      {
        todo: 'Its Lua scripts are read from there: mark carillon as external in your bundler and install it beside the bundle.',
      },
    );
  }
  return root;
}

/**
 * The folder of an installed package, as an import from this package would find it.
 *
 * @param name the package's name: `'bullmq'`.
 * @throws CarillonError `UNSUPPORTED` when it is not installed where this package can see it.
 */
export function resolvePackageDir(name: string): string {
  const require = createRequire(join(packageRoot(), 'package.json'));
  let entry: string;
  try {
    entry = require.resolve(name);
  } catch (cause) {
    throw new CarillonError('UNSUPPORTED', `the package ${name} is not installed beside carillon`, {
      field: name,
      todo: `Run: npm install ${name}`,
      cause,
    });
  }
  const dir = findPackage(name, dirname(entry));
  if (dir === undefined) {
    throw new CarillonError('UNSUPPORTED', `there is no package.json of ${name} above ${entry}`, {
      field: name,
    });
  }
  return dir;
}

/**
 * `import.meta.url` does not exist in the CommonJS build, `__dirname` not in ESM; the build replaces the former.
 * `node -e` has a global `__dirname` of `.`, which is nobody's folder.
 */
function ownFolder(): string {
  return typeof __dirname === 'string' && isAbsolute(__dirname)
    ? __dirname
    : dirname(fileURLToPath(import.meta.url));
}

/** Goes up from `from` to the first package.json of that name; a build's own `{"type": ...}` file has none. */
function findPackage(name: string, from: string): string | undefined {
  for (let dir = from; ; dir = dirname(dir)) {
    if (nameIn(join(dir, 'package.json')) === name) return dir;
    if (dir === dirname(dir)) return undefined;
  }
}

function nameIn(file: string): unknown {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown }).name;
  } catch {
    return undefined;
  }
}
