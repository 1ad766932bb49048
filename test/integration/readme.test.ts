import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Queue as BullQueue } from 'bullmq';
import { beforeAll, describe, expect, test } from 'vitest';
import { STATES } from '../../src/domain/states.js';
import { onCleanup } from '../support/cleanup.js';
import { spawnNode } from '../support/node-process.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGES = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];
/** Pages whose TypeScript is a program when its pieces are put together. */
const PROGRAMS = ['README.md', 'docs/schedules.md', 'docs/migration-from-bullmq.md'];

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** The TypeScript blocks of a page in their order, each without its indent. */
function programOf(page: string): string {
  const blocks = [...read(page).matchAll(/^( *)```ts\n([\s\S]*?)^ *```$/gm)];
  return blocks
    .map(([, indent = '', code = '']) => code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
    .join('\n');
}

/** Comments on lines of their own in a program: what it prints there, in order. */
function promised(program: string): string[] {
  return [...program.matchAll(/^\/\/ (.+)$/gm)].map(([, line = '']) => line);
}

/** A user's project: `carillon` and its peers can be imported, nothing else of ours. */
class Project {
  readonly dir = mkdtempSync(join(tmpdir(), 'carillon-pages-'));

  constructor() {
    onCleanup('a project with the programs of the pages', () => rmSync(this.dir, { recursive: true }));
    symlinkSync(join(ROOT, 'node_modules'), join(this.dir, 'node_modules'));
    this.write('package.json', JSON.stringify({ type: 'module' }));
    this.write(
      'tsconfig.json',
      JSON.stringify({
        extends: join(ROOT, 'tsconfig.json'),
        compilerOptions: { paths: { carillon: [join(ROOT, 'src/index.ts')] } },
        include: ['*.ts'],
      }),
    );
  }

  write(file: string, text: string): string {
    const path = join(this.dir, file);
    writeFileSync(path, text);
    return path;
  }

  run(page: string, redis: RedisServer) {
    const name = `${page.replaceAll(/\W/g, '-')}.ts`;
    const program = programOf(page).replaceAll('port: 6379', `port: ${redis.port}`);
    return spawnNode(this.write(name, program), [], {
      TSX_TSCONFIG_PATH: join(this.dir, 'tsconfig.json'),
    });
  }
}

describe('the programs of the pages', { timeout: 120_000 }, () => {
  let project: Project;

  beforeAll(() => {
    project = new Project();
  });

  test('their types are right', async () => {
    for (const page of PROGRAMS) project.write(`${page.replaceAll(/\W/g, '-')}.ts`, programOf(page));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const checking = spawnNode(tsc, ['-p', join(project.dir, 'tsconfig.json')]);
    const { code } = await checking.exited;
    expect(code, checking.lines.join('\n')).toBe(0);
  });

  test('the README’s five steps add, plan, dispatch and run', async () => {
    const steps = project.run('README.md', await startRedis());
    await steps.waitForLine('welcome ann@example.com');
    expect(steps.lines[0]).toBe('created');
    const previewed = steps.lines.filter((line) => /^\d{4}-\d\d-\d\dT08:30:00\+0[01]:00$/.test(line));
    expect(previewed).toHaveLength(3);
    expect(await steps.stop()).toBeDefined();
    expect(steps.stderr).not.toMatch(/error/i);
  });

  test('docs/schedules.md prints what it says', async () => {
    const schedules = project.run('docs/schedules.md', await startRedis());
    expect(await schedules.exited, schedules.stderr).toMatchObject({ code: 0 });
    const lines = promised(programOf('docs/schedules.md'));
    expect(lines.length).toBeGreaterThan(5);
    expect(schedules.lines.filter((line) => lines.includes(line))).toEqual(lines);
    expect(schedules.lines.filter((line) => /T02:30:00\+0[01]:00/.test(line))).toHaveLength(3);
    expect(schedules.lines).toContain('paused the bank is closed');
  });

  test('docs/migration-from-bullmq.md moves Job Schedulers over', async () => {
    const redis = await startRedis();
    const old = new BullQueue('emails', { connection: { port: redis.port } });
    onCleanup('BullMQ’s queue', () => old.close());
    await old.upsertJobScheduler('nightly', { pattern: '30 2 * * *', tz: 'Europe/London' });
    await old.upsertJobScheduler('often', { every: 3_600_000 }, { name: 'ping', data: { a: 1 } });
    const migration = project.run('docs/migration-from-bullmq.md', redis);
    expect(await migration.exited, migration.stderr).toMatchObject({ code: 0 });
    expect(migration.lines[0]).toBe('created delayed');
    expect(migration.lines.slice(1).sort()).toEqual(['nightly scheduled', 'often scheduled']);
    expect(await old.getJobSchedulersCount()).toBe(0);
  });
});

test.each(PAGES)('%s links to files that exist', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = '']) => link);
  const missing = links.filter((link) => !existsSync(join(ROOT, dirname(page), link)));
  expect(missing).toEqual([]);
});

test.each(PAGES)('%s promises no more of delivery than holds', (page) => {
  expect(read(page)).not.toMatch(/exactly[- ]once/i);
});

test('every page is in the README’s index', () => {
  const index = read('README.md');
  expect(PAGES.filter((page) => page !== 'README.md' && !index.includes(`(${page})`))).toEqual([]);
});

describe('docs/architecture.md', () => {
  const page = read('docs/architecture.md');

  test('its table of states is the domain’s', () => {
    const rows = Object.entries(STATES).map(
      ([state, { index, entered, left, kept }]) => `| ${state} | ${index} | ${entered} | ${left} | ${kept} |`,
    );
    const head = '| state | index | comes from | leaves by | kept |';
    const table = page.replaceAll(/ +/g, ' ').replaceAll(/\| -+ (?=\|)/g, '| - ');
    expect(table).toContain([head, '| - | - | - | - | - |', ...rows].join('\n'));
  });

  test('its picture shows these states and no other', () => {
    const picture = /stateDiagram-v2\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    const shown = [...picture.matchAll(/^ *(\S+) --> ([^:\s]+):/gm)].flatMap(([, from, to]) => [from, to]);
    expect(new Set(shown.filter((state) => state !== '[*]'))).toEqual(new Set(Object.keys(STATES)));
  });

  test('its tree names every folder of src', () => {
    const folders = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => relative(ROOT, join(ROOT, 'src', name)));
    expect(folders.filter((folder) => !page.includes(`${folder} `))).toEqual([]);
  });
});
