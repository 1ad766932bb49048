import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDERS = [
  'domain',
  'support',
  'config',
  'redis',
  'queue',
  'coordination',
  'scheduler',
  'client',
  'worker',
  'server',
  'bench',
  'cli',
] as const;
type Folder = (typeof FOLDERS)[number];

/** Who may import whom: the architecture, said a second time, so that a slip in biome.json shows. */
const MAY_IMPORT: Record<Folder, readonly Folder[]> = {
  domain: [],
  support: ['domain'],
  config: ['domain', 'redis', 'support'],
  redis: ['domain', 'support'],
  queue: ['domain', 'support', 'config', 'redis'],
  coordination: ['domain', 'support'],
  scheduler: ['domain', 'support', 'config', 'redis', 'queue', 'coordination'],
  client: ['domain', 'support', 'config', 'redis', 'queue'],
  worker: ['domain', 'support', 'config', 'redis', 'queue'],
  server: ['domain', 'support', 'config', 'redis', 'queue', 'coordination', 'scheduler', 'client', 'worker'],
  bench: ['domain', 'support', 'config', 'redis', 'queue', 'coordination', 'scheduler', 'client'],
  cli: FOLDERS,
};

interface Diagnostic {
  category: string;
  location: { path: string };
}

let dir: string;
let findings: Map<string, Set<string>>;

/** A project of one-line modules, each of which should be refused, or not; linted in one go. */
const files = new Map<string, string>();

for (const from of FOLDERS) {
  for (const to of FOLDERS) {
    if (from === to) continue;
    files.set(`src/${from}/import-${to}.ts`, `import '../${to}/import-nothing.js';`);
    files.set(`src/${from}/type-${to}.ts`, `export type { T } from '../${to}/import-nothing.js';`);
    files.set(
      `src/${from}/later-${to}.ts`,
      `export const later = () => import('../${to}/import-nothing.js');`,
    );
  }
  files.set(`src/${from}/import-nothing.ts`, `import './neighbour.js';`);
  files.set(`src/${from}/index-import.ts`, `import '../index.js';`);
  files.set(`src/${from}/bullmq.ts`, `import 'bullmq';`);
  files.set(`src/${from}/bullmq-inner.ts`, `import 'bullmq/dist/cjs/index.js';`);
  files.set(`src/${from}/use-etcd3.ts`, `import 'etcd3';`);
  files.set(`src/${from}/commander.ts`, `import 'commander';`);
}
const ETCD = 'src/coordination/etcd';
files.set(`${ETCD}/etcd-client.ts`, `import 'etcd3'; import '../../domain/import-nothing.js';`);
files.set(`${ETCD}/etcd-session.ts`, `import '../../support/import-nothing.js'; import '../coordinator.js';`);
files.set(`${ETCD}/use-etcd3.ts`, `import 'etcd3';`);
files.set(`${ETCD}/import-redis.ts`, `import '../../redis/import-nothing.js';`);

const PURE = `export const day = (ms: number) => new Date(ms).toISOString() + Math.floor(ms) + Date.UTC(2026);`;
const IMPURE = {
  'date-now': 'export const t = () => Date.now();',
  'date-now-alias': 'export const clock = Date.now;',
  'new-date': 'export const t = () => new Date();',
  'new-date-bare': 'export const t = () => new Date;',
  'date-call': 'export const t = () => Date();',
  random: 'export const r = () => Math.random();',
  performance: 'export const t = () => performance.now();',
  timer: 'export const wait = () => setTimeout(() => undefined, 1);',
  environment: 'export const e = () => process.env.HOME;',
  files: `import 'node:fs';`,
  uuid: `import { randomUUID } from 'node:crypto'; export const id = randomUUID;`,
  redis: `import 'ioredis';`,
  logger: `import 'pino';`,
};
files.set('src/domain/pure.ts', PURE);
files.set('src/domain/hash.ts', `import { createHash } from 'node:crypto'; export const hash = createHash;`);
for (const [name, text] of Object.entries(IMPURE)) files.set(`src/domain/impure-${name}.ts`, text);
files.set('src/redis/impure-date-now.ts', IMPURE['date-now']);

files.set('src/redis/cycle-a.ts', `import { b } from './cycle-b.js'; export const a = () => b;`);
files.set('src/redis/cycle-b.ts', `import { a } from './cycle-a.js'; export const b = () => a;`);
files.set('src/index.ts', `export * from './cli/import-nothing.js';`);

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'carillon-lint-'));
  for (const name of ['biome.json', 'scripts/lint', '.gitignore']) {
    cpSync(join(ROOT, name), join(dir, name), { recursive: true });
  }
  for (const [file, text] of files) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), `${text}\n`);
  }
  const biome = join(ROOT, 'node_modules', '.bin', 'biome');
  const run = spawnSync(biome, ['lint', '--reporter=json', '--max-diagnostics=none', '.'], {
    cwd: dir,
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  const { diagnostics } = JSON.parse(run.stdout) as { diagnostics: Diagnostic[] };
  findings = new Map();
  for (const { category, location } of diagnostics) {
    const rules = findings.get(location.path) ?? new Set();
    findings.set(location.path, rules.add(category));
  }
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

function rulesOf(file: string): string[] {
  if (!files.has(file)) throw new Error(`no such fixture: ${file}`);
  return [...(findings.get(file) ?? [])];
}

const DIRECTION = 'lint/style/noRestrictedImports';

test.each(FOLDERS)('src/%s imports what it may, and nothing else', (from) => {
  for (const to of FOLDERS) {
    if (from === to) continue;
    const expected = MAY_IMPORT[from].includes(to) ? [] : [DIRECTION];
    for (const form of ['import', 'type', 'later']) {
      const file = `src/${from}/${form}-${to}.ts`;
      expect([file, rulesOf(file)]).toEqual([file, expected]);
    }
  }
  expect(rulesOf(`src/${from}/import-nothing.ts`)).toEqual([]);
  expect(rulesOf(`src/${from}/index-import.ts`)).toEqual(from === 'cli' ? [] : [DIRECTION]);
});

test.each(FOLDERS)('src/%s imports the packages that it may', (from) => {
  expect(rulesOf(`src/${from}/bullmq.ts`)).toEqual(from === 'queue' ? [] : [DIRECTION]);
  expect(rulesOf(`src/${from}/bullmq-inner.ts`)).toEqual(from === 'queue' ? [] : [DIRECTION]);
  expect(rulesOf(`src/${from}/use-etcd3.ts`)).toEqual([DIRECTION]);
  expect(rulesOf(`src/${from}/commander.ts`)).toEqual(from === 'cli' ? [] : [DIRECTION]);
});

test('only etcd-client imports etcd3, and its folder is bound by the direction of coordination', () => {
  expect(rulesOf(`${ETCD}/etcd-client.ts`)).toEqual([]);
  expect(rulesOf(`${ETCD}/etcd-session.ts`)).toEqual([]);
  expect(rulesOf(`${ETCD}/use-etcd3.ts`)).toEqual([DIRECTION]);
  expect(rulesOf(`${ETCD}/import-redis.ts`)).toEqual([DIRECTION]);
});

test.each(Object.keys(IMPURE))('the domain is refused %s', (name) => {
  expect(rulesOf(`src/domain/impure-${name}.ts`)).toHaveLength(1);
});

test('the domain may compute with dates and hashes; others may read the clock', () => {
  expect(rulesOf('src/domain/pure.ts')).toEqual([]);
  expect(rulesOf('src/domain/hash.ts')).toEqual([]);
  expect(rulesOf('src/redis/impure-date-now.ts')).toEqual([]);
});

test('import cycles are errors', () => {
  expect(rulesOf('src/redis/cycle-a.ts')).toEqual(['lint/suspicious/noImportCycles']);
});

test('the entry point loads no command line', () => {
  expect(rulesOf('src/index.ts')).toEqual([DIRECTION]);
});
