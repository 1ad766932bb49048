import { describe, expect, test } from 'vitest';
import { namespaceFor } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

const AS_IT_WAS = {
  definition: {
    cron: ['0 3 1 1 *'],
    tz: 'Europe/London',
    missed: 'latest',
    jitter: 300_000,
    tags: ['money', 'night'],
  },
  template: { name: 'invoice', data: { n: 1 }, opts: { attempts: 5 } },
};
/** What stands there, as flags; it does not fire within the test. */
const WHOLE = [
  '--cron', '0 3 1 1 *', '--tz', 'Europe/London', '--missed', 'latest', '--jitter', '5m', '--tag', 'money', '--tag', 'night',
  '--name', 'invoice', '--data', '{"n":1}', '--opts', '{"attempts":5}',
]; // biome-ignore format: one command

async function billing(task: { name: string }) {
  const cli = new InProcessCli(namespaceFor(task));
  const run = (verb: string, ...flags: string[]) =>
    cli.run('schedules', verb, 'billing', 'nightly', ...flags);
  const stored = () => cli.json<object>('schedules', 'get', 'billing', 'nightly');
  await cli.text('schedules', 'upsert', 'billing', 'nightly', ...WHOLE);
  return { cli, run, stored };
}

describe('schedules update', () => {
  test('changes what is named, keeps the rest, and shows the difference', async ({ task }) => {
    const { run, stored } = await billing(task);
    const { code, stdout, stderr } = await run('update', '--cron', '0 4 1 1 *', '--clear', 'jitter', '--data', '7');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [headline, ...differences] = stdout.trimEnd().split('\n');
    expect(headline).toMatch(/^updated nightly in billing: 0 4 1 1 \* Europe\/London, next 2\d{3}-01-01T04:0\d/);
    expect(differences).toEqual(['  cron: "0 3 1 1 *" → "0 4 1 1 *"', '  jitter: "5m" → none', '  data: {"n":1} → 7']);
    const { jitter: _, ...kept } = AS_IT_WAS.definition;
    expect(await stored()).toMatchObject({ template: { ...AS_IT_WAS.template, data: 7 } });
    expect((await stored()) as typeof AS_IT_WAS).toHaveProperty('definition', { ...kept, cron: ['0 4 1 1 *'] });
  }); // biome-ignore format: one command

  test.for([
    ['tag', { tags: undefined }],
    ['tz', { tz: undefined }],
  ] as const)('--clear %s', async ([option, expected], { task }) => {
    const { run, stored } = await billing(task);
    expect(await run('update', '--clear', option)).toMatchObject({ code: 0 });
    expect((await stored()) as typeof AS_IT_WAS).toHaveProperty('definition', {
      ...AS_IT_WAS.definition,
      ...expected,
    });
  });

  test('clears the template’s parts', async ({ task }) => {
    const { run, stored } = await billing(task);
    await run('update', '--clear', 'name', '--clear', 'data', '--clear', 'opts');
    expect(await stored()).toMatchObject({
      definition: AS_IT_WAS.definition,
      template: { name: 'nightly', data: {}, opts: {} },
    });
  });

  test('an interval takes the place of an expression, and the other way round', async ({ task }) => {
    const { cli, run } = await billing(task);
    await run('update', '--every', '9000h', '--anchor', '0');
    const update = (...flags: string[]) =>
      cli.json<{ definition: object }>('schedules', 'update', 'billing', 'nightly', ...flags);
    const { definition } = await update('--cron', '0 3 1 1 *');
    expect(definition).toEqual(AS_IT_WAS.definition);
  });

  test('--dry-run writes nothing; --json is one document', async ({ task }) => {
    const { cli, run, stored } = await billing(task);
    const dry = await run('update', '--jitter', '10m', '--dry-run');
    expect(dry).toMatchObject({ code: 0, stderr: 'a dry run: nothing was written\n' });
    expect(dry.stdout).toMatch(/^would be updated nightly in billing: .*\n {2}jitter: "5m" → "10m"\n$/);
    const differences = [{ option: 'jitter', from: '5m', to: '10m' }];
    const update = (...flags: string[]) =>
      cli.json('schedules', 'update', 'billing', 'nightly', '--jitter', '10m', ...flags);
    expect(await update('--dry-run')).toMatchObject({ id: 'nightly', dryRun: true, differences });
    expect(await stored()).toMatchObject(AS_IT_WAS);
    expect(await update()).toMatchObject({ definition: { jitter: 600_000 }, differences });
    expect((await run('update', '--jitter', '10m')).stdout).toMatch(/^unchanged nightly in billing: .*\n$/);
  });

  test.for([
    [['--clear', 'jiter'], 2, 'Did you mean jitter? Give one of '],
    [['--clear', 'nope'], 2, 'Give one of anchor, phase, tz, gap, '],
    [['--clear', 'missed'], 2, 'nothing that can be cleared'],
    [['--clear', 'jitter', '--jitter', '1m'], 2, 'both given and cleared'],
    [[], 2, 'names nothing to change'],
    [['--cron', '61 * * * *'], 2, '(INVALID_CRON)'],
    [['--phase', '1m'], 2, 'belongs to every'],
    [['--cron', '@daily', '--every', '1h'], 2, '(INVALID_OPTION)'],
  ] as const)('refused: %j', async ([flags, code, text], { task }) => {
    const { run, stored } = await billing(task);
    const outcome = await run('update', ...flags);
    expect(outcome).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(text) });
    expect(await stored()).toMatchObject(AS_IT_WAS);
  });

  test('NOT_FOUND makes nothing: of an unknown id, and of a namespace that is not there', async ({
    task,
  }) => {
    const { cli } = await billing(task);
    const update = ['update', 'billing', 'none', '--tag', 'x'];
    const elsewhere = ['--namespace', `${cli.prefix}-none`];
    for (const place of [[], elsewhere]) {
      const { code, stderr } = await cli.run(...place, 'schedules', ...update);
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('(NOT_FOUND)') });
    }
  });
});

describe('schedules upsert of one that is there', () => {
  test('shows what it changes, and names what goes back to its default', async ({ task }) => {
    const { run } = await billing(task);
    const { code, stdout, stderr } = await run('upsert', '--cron', '0 4 1 1 *', '--missed', 'latest');
    expect(code).toBe(0);
    const [headline, ...differences] = stdout.trimEnd().split('\n');
    expect(headline).toMatch(/^nightly in billing: 0 4 1 1 \* UTC, next /);
    expect(differences.sort()).toEqual(
      [
        '  cron: "0 3 1 1 *" → "0 4 1 1 *"',
        '  tz: "Europe/London" → "UTC"',
        '  jitter: "5m" → none',
        '  tags: ["money","night"] → none',
        '  name: "invoice" → "nightly"',
        '  data: {"n":1} → {}',
        '  opts: {"attempts":5} → {}',
      ].sort(),
    );
    expect(stderr).toMatch(/^not said here, so back to the default: .*schedules update/);
    const named = stderr.match(/default: ([^;]*);/)?.[1]?.split(', ');
    expect(named?.sort()).toEqual(['data', 'jitter', 'name', 'opts', 'tags', 'tz']);
  });

  test('of what is so already, and of a new one, there is no difference', async ({ task }) => {
    const { cli, run } = await billing(task);
    expect(await run('upsert', ...WHOLE)).toEqual({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^nightly in billing: [^\n]*\n$/),
    });
    const upsert = (id: string) => cli.json('schedules', 'upsert', 'billing', id, ...WHOLE);
    expect(await upsert('nightly')).toMatchObject({ change: 'unchanged', differences: [] });
    expect(await upsert('other')).toMatchObject({ change: 'added', differences: [] });
  });

  test('--dry-run tells, and writes nothing, not even a namespace', async ({ task }) => {
    const { cli, run, stored } = await billing(task);
    const dry = await run('upsert', '--cron', '0 3 1 1 *', '--missed', 'skip', '--dry-run');
    expect(dry.stdout).toMatch(/^would be changed nightly in billing: 0 3 1 1 \* UTC\n/);
    expect(dry.stdout).toContain('\n  missed: "latest" → "skip"\n');
    expect(dry.stderr).toMatch(/a dry run: nothing was written\n$/);
    expect(await stored()).toMatchObject(AS_IT_WAS);
    const elsewhere = ['--namespace', `${cli.prefix}-none`, 'schedules'];
    const added = await cli.run(...elsewhere, 'upsert', 'billing', 'nightly', ...WHOLE, '--dry-run');
    expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^would be added nightly/) });
    expect(await cli.run(...elsewhere, 'pause', 'billing', 'nightly')).toMatchObject({
      stderr: expect.stringContaining('holds nothing'),
    });
    const refused = await run('upsert', '--cron', '61 * * * *', '--missed', 'skip', '--dry-run');
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('(INVALID_CRON)') });
  });
});
