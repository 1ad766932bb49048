// Exits 0 when node_modules holds exactly what package-lock.json asks for, by npm's own record of what it installed.
// Plain JavaScript: it runs before anything is installed.
import { readFileSync } from 'node:fs';

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')).packages;
  } catch {
    return undefined;
  }
}

const wanted = packagesOf('package-lock.json') ?? {};
const installed = packagesOf('node_modules/.package-lock.json');

const stale =
  installed === undefined ||
  // An optional package may be for another platform.
  Object.entries(wanted).some(
    ([path, { version, optional }]) =>
      path !== '' && installed[path]?.version !== version && !(optional && installed[path] === undefined),
  ) ||
  Object.keys(installed).some((path) => wanted[path] === undefined);

process.exitCode = stale ? 1 : 0;
