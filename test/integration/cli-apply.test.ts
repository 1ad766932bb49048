import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Queue } from '../../src/index.js';
import { readData } from '../unit/domain/corpus.js';
import { cliAndQueues, InProcessCli, idsOf } from './cli-in-process.js';

const EXAMPLE = readFileSync(new URL('../../examples/schedules.yaml', import.meta.url), 'utf8');

describe('apply', () => {
  test('the example: shown, written, and then unchanged', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'reports', 'health');
    const [reports, health] = queues as [Queue, Queue];
    const file = cli.file('schedules.yaml', EXAMPLE);
    const shown = await cli.text('apply', '-f', file, '--dry-run');
    expect(shown).toContain('  + nightly-invoices  30 2 * * * Europe/London  (schedules.yaml:7)\n');
    expect(shown).toContain('  + certificate  @weekly UTC, paused  (schedules.yaml:');
    expect(shown).toContain('5 to add, 0 to change, 0 unchanged\n');
    expect(await idsOf(reports)).toEqual([]);

    expect(await cli.text('apply', '-f', file, '--yes')).toContain('applied 5 changes');
    expect(await reports.schedules.get('nightly-invoices').describe()).toMatchObject({
      state: 'scheduled',
      definition: {
        cron: ['30 2 * * *'],
        tz: 'Europe/London',
        missed: 'latest',
        grace: 300_000,
        jitter: 600_000,
        tags: ['applied:example', 'billing'],
      },
      template: { name: 'invoice', data: { currency: 'GBP' }, opts: { attempts: 5 } },
    });
    expect((await reports.schedules.get('from-quartz').describe())?.definition.cron).toEqual([
      '0 12 * * MON-FRI',
    ]);
    expect(await health.schedules.get('certificate').describe()).toMatchObject({
      state: 'paused',
      note: 'until the new host is up',
    });
    expect(await cli.text('apply', '-f', file)).toContain('0 to add, 0 to change, 5 unchanged\n');
  });

  test('what never fires is told, while it is new or its times change', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const over = (year: number) =>
      cli.file(
        's.yaml',
        `queues:\n  a:\n    one: { cron: '0 5 * * *', missed: skip, endDate: ${year}-01-01T00:00:00Z }\n`,
      );
    const warnings = (file: string) =>
      cli
        .json<{ schedules: { warnings: string[] }[] }>('apply', '-f', file, '--yes')
        .then(({ schedules }) => schedules[0]?.warnings);
    const sentence = (year: number) => [`it never fires: its endDate ${year}-01-01T00:00:00.000Z is over`];
    expect(await warnings(over(2020))).toEqual(sentence(2020));
    expect(await warnings(over(2021))).toEqual(sentence(2021));
    expect(await queues[0].schedules.get('one').describe()).toMatchObject({ warnings: sentence(2021) });
    expect(await warnings(over(2021))).toEqual([]);
    expect(await warnings(over(9000))).toEqual([]);
  });

  test('prune deletes what an earlier apply of the label created, and nothing else', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a', 'b');
    const [a, b] = queues as [Queue, Queue];
    const schedule = "{ cron: '0 5 * * *', missed: skip }";
    await a.schedules.upsert('by-hand', { cron: '0 5 * * *', missed: 'skip' });
    await a.schedules.upsert('adopted', { cron: '0 5 * * *', missed: 'skip' });
    const whole = `label: mine\nqueues:\n  a: { one: ${schedule}, two: ${schedule}, adopted: ${schedule} }\n  b: { three: ${schedule} }\n`;
    await cli.text('apply', '-f', cli.file('mine.yaml', whole), '--yes');
    await cli.text(
      'apply',
      '-f',
      cli.file('other.yaml', `label: other\nqueues:\n  a: { theirs: ${schedule} }\n`),
      '--yes',
    );

    const less = cli.file('mine.yaml', `label: mine\nqueues:\n  a: { one: ${schedule} }\n`);
    const without = await cli.run('apply', '-f', less, '--yes');
    expect(without.stderr).toContain('2 schedules of earlier applies are in no file any more; --prune');
    expect(await idsOf(b)).toEqual(['three']);
    const shown = await cli.text('apply', '-f', less, '--prune', '--yes');
    expect(shown).toContain('queue a\n  - two\n  = 1 unchanged\nqueue b\n  - three\n');
    expect(shown).toContain('0 to add, 0 to change, 1 unchanged, 2 to delete\napplied 2 changes\n');
    expect(await idsOf(a)).toEqual(['adopted', 'by-hand', 'one', 'theirs']);
    expect(await idsOf(b)).toEqual([]);
  });

  test('a label outlives the name of the file', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const text = (id: string) => `label: web\nqueues:\n  a:\n    ${id}: { every: 1h, missed: skip }\n`;
    await cli.text('apply', '-f', cli.file('one.yaml', text('x')), '--yes');
    await cli.text('apply', '-f', cli.file('two.yaml', text('y')), '--prune', '--yes');
    expect(await idsOf(queues[0])).toEqual(['y']);
  });

  test('what stands is changed option by option; its pause is left alone unless the file says', async ({
    task,
  }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const handle = queues[0].schedules.get('x');
    const text = (more: string) => `queues:\n  a:\n    x: { cron: '0 5 * * *', missed: skip${more} }\n`;
    await cli.text('apply', '-f', cli.file('f.yaml', text('')), '--yes');
    await handle.pause({ note: 'by hand' });
    expect(await cli.text('apply', '-f', cli.file('f.yaml', text(', jitter: 5m')), '--yes')).toContain(
      '      jitter: none → "5m"\n',
    );
    expect(await handle.describe()).toMatchObject({ state: 'paused', note: 'by hand' });
    const resumed = await cli.text('apply', '-f', cli.file('f.yaml', text(', paused: false')), '--yes');
    expect(resumed).toContain('      jitter: "5m" → none\n      paused: "by hand" → false\n');
    expect((await handle.describe())?.state).toBe('scheduled');
  });
});

test('apply takes several expressions in a dialect', async ({ task }) => {
  const { cli, queues } = cliAndQueues(task, 'a');
  const text = (crons: string) =>
    `queues:\n  a:\n    x:\n      dialect: quartz\n      crons: [${crons}]\n      tz: Europe/London\n      missed: skip\n`;
  const file = cli.file('f.yaml', text("'0 0 12 ? * 2', '0 0 0/2 * * ?'"));
  expect(await cli.text('apply', '-f', file, '--yes')).toContain(
    'write */2 to run through the repeated hour',
  );
  expect((await queues[0].schedules.get('x').describe())?.definition).toMatchObject({
    cron: ['0 12 * * MON', '0 0/2 * * *'],
    tz: 'Europe/London',
  });
});

describe('a file that is not right is refused whole', () => {
  const problemsOf = async (cli: InProcessCli, text: string) => {
    const { code, stdout, stderr } = await cli.run('apply', '-f', cli.file('f.yaml', text), '--yes');
    expect([code, stdout]).toEqual([2, '']);
    return stderr;
  };

  test('each problem with its line; nothing is written', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const stderr = await problemsOf(
      cli,
      [
        'queues:',
        '  a:',
        "    good: { cron: '0 5 * * *', missed: skip }",
        '    typo:',
        "      cron: '0 5 * * *'",
        '      mised: skip',
        '    zone:',
        "      cron: '0 5 * * *'",
        '      missed: skip',
        '      tz: Europe/Lodnon',
        '    several:',
        '      missed: skip',
        '      crons:',
        "        - '0 5 * * *'",
        "        - '61 5 * * *'",
        '    attempts:',
        "      cron: '0 5 * * *'",
        '      missed: skip',
        '      template:',
        '        opts:',
        '          attempts: many',
        '    none: { missed: skip }',
        '    quartz: { dialect: quartz, cron: 0 0 12 ? * 9, missed: skip }',
      ].join('\n'),
    );
    for (const line of [
      /f\.yaml:6: a\.typo: .*mised.*missed/,
      /f\.yaml:10: a\.zone: .*Europe\/London/,
      /f\.yaml:15: a\.several: crons\[1\]/,
      /f\.yaml:21: a\.attempts: attempts/,
      /f\.yaml:22: a\.none: /,
      /f\.yaml:23: a\.quartz: .*counts from 1 = Sunday/,
    ]) {
      expect(stderr).toMatch(line);
    }
    expect(stderr).toMatch(/error: f\.yaml:6: .*there are 5 more problems/i);
    expect(await idsOf(queues[0])).toEqual([]);
  });

  test.each([
    [
      'queues:\n  a:\n    x: { every: 1h, missed: skip, tz: *b }\n',
      /f\.yaml:3: \*b names nothing.*needs quotes/,
    ],
    ['queues:\n  a:\n    x: { cron: * * * * *, missed: skip }\n', /f\.yaml:3: .*needs quotes/],
    [
      'queues:\n  a:\n    x: { every: 1h, missed: skip }\n    x: { every: 2h, missed: skip }\n',
      /f\.yaml:4: .*unique/,
    ],
    ['queues: [a]\n', /f\.yaml:1: .*no mapping/],
    ['quues: {}\n', /f\.yaml:1: .*quues/],
    ['- a\n', /f\.yaml:1: the file is no mapping/],
    ['', /the file is no mapping/],
    ['queues:\n  "a:b": {}\n', /f\.yaml:2: .*colon/],
    ['queues:\n  a:\n    "x@17": { every: 1h, missed: skip }\n', /f\.yaml:3: .*ends like/],
    [
      'queues:\n  a:\n    x:\n      dialect: quartz\n      missed: skip\n      crons:\n        - 0 0 12 * * ?\n        - 0 0 25 * * ?\n',
      /f\.yaml:8: a\.x: expression "0 0 25 \* \* \?", which is cron "0 25 \* \* \*": hour: 25/,
    ],
    [
      'queues:\n  a:\n    x: { dialect: quartz, crons: [5], missed: skip }\n',
      /f\.yaml:3: .*crons\[0\] 5 is no/,
    ],
    ['queues:\n  a:\n    x: { dialect: quartz, every: 1h, missed: skip }\n', /f\.yaml:3: .*cron or crons/],
    [
      'queues:\n  a:\n    x: { every: 1h, missed: skip, tags: ["applied:me"] }\n',
      /f\.yaml:3: .*apply itself/,
    ],
    [
      'queues:\n  a:\n    x: { every: 1h, missed: skip, tags: ["imported:me"] }\n',
      /f\.yaml:3: .*import itself/,
    ],
    ['queues:\n  a:\n    x: { every: 1h, missed: skip, paused: 5 }\n', /f\.yaml:3: .*paused/],
    [
      'queues:\n  a:\n    x: { cron: "0 5 * * *", missed: skip, startsAtOnce: true }\n',
      /f\.yaml:3: .*startsAtOnce/,
    ],
    [
      'queues:\n  a:\n    x: { cron: "0 5 * * 1", missed: skip, bullmqPattern: "0 5 * * 2" }\n',
      /f\.yaml:3: .*bullmqPattern/,
    ],
    ['label: "a b"\nqueues: {}\n', /f\.yaml:1: .*label/],
  ])('%j', async (text, message) => {
    expect(await problemsOf(new InProcessCli('t-apply-problems'), text as string)).toMatch(message as RegExp);
  });
});

describe('export', () => {
  test('YAML that apply takes back unchanged, here and in another namespace', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'reports', 'health');
    const [reports, health] = queues as [Queue, Queue];
    await cli.text('apply', '-f', cli.file('schedules.yaml', EXAMPLE), '--yes');
    await reports.schedules.upsert(
      'all-of-it',
      {
        crons: ['0 5 * * *', '@daily'],
        tz: 'Asia/Tokyo',
        gap: 'edge',
        fold: 'both',
        startDate: '2026-01-01T00:00:00Z',
        endDate: '2099-01-01T00:00:00Z',
        limit: 5,
        missed: 'all',
        grace: '90s',
        catchupWindow: '36h',
        maxCatchup: 7,
        onTooMany: 'newest',
        overlap: 'bufferOne',
        maxConcurrent: 2,
        maxOpenRuns: 9,
        pauseOnFailure: 3,
        keepRuns: 10,
        tags: ['b', 'a'],
      },
      {
        data: { text: 'a: "b" # c', list: [1, [], {}, null], deep: { on: true } },
        opts: { attempts: 2, priority: 3 },
      },
    );
    await health.upsertJobScheduler('bullmq', { every: 900_000 }, { data: {} });
    await health.upsertJobScheduler('days', { pattern: '0 9 */2 * 1', tz: 'Asia/Tokyo' }, { data: {} });
    await health.schedules.upsert(
      '17',
      { every: '1d', anchor: '2026-01-01T03:00:00Z', missed: 'latest' },
      { data: 'x' },
    );
    await health.schedules.get('17').pause();

    const yaml = await cli.text('export');
    const file = cli.file('exported.yaml', yaml);
    expect(await cli.text('apply', '-f', file)).toContain('0 to add, 0 to change, 9 unchanged\n');
    expect(yaml).not.toContain('applied:');

    const other = new InProcessCli(`${cli.prefix}-other`);
    expect(await other.text('apply', '-f', file, '--yes')).toContain('applied 9 changes');
    expect(await other.text('export')).toBe(yaml);
  });

  test('one queue only, and an empty namespace', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a', 'b');
    expect(await cli.text('export')).toContain('queues: {}');
    for (const queue of queues) await queue.schedules.upsert('x', { every: '1h', missed: 'skip' });
    expect(await cli.text('export', '--queue', 'a')).toMatch(/queues:\n {2}a:\n {4}x:\n/);
    expect(await cli.text('export', 'b')).not.toContain('  a:');
    expect((await cli.run('export', 'b', '--queue', 'a')).code).toBe(2);
  });

  test('a crontab that import takes back', async ({ task }) => {
    const { cli } = cliAndQueues(task);
    const text = readData('corpus/crontabs/10-nightly-staggered.crontab');
    await cli.text('import', 'crontab', cli.file('t', text), '--yes');
    const crontab = await cli.text('export', 'crontab', '--format', 'crontab');
    expect(await cli.text('import', 'crontab', cli.file('t', crontab))).toMatch(
      /^0 to add, 0 to change, 27 unchanged$/m,
    );
    const { stderr } = await cli.run('export', '--format', 'crontab', '--user-column');
    expect(stderr.match(/not exported: .*names no user/g)).toHaveLength(27);
  });

  test('back into BullMQ: shown, then moved', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'q');
    const [queue] = queues;
    await queue.schedules.upsert('nightly', {
      cron: '30 2 * * *',
      tz: 'Asia/Tokyo',
      missed: 'all',
      overlap: 'allow',
    });
    await queue.schedules.upsert('resting', { every: '1h', missed: 'skip' });
    await queue.schedules.get('resting').pause();
    await queue.add('x', {}, { delay: 3_600_000 });
    const shown = await cli.text('export', '--to', 'bullmq', 'q', '--dry-run');
    expect(shown).toBe(`queue q
  + nightly  30 2 * * * Asia/Tokyo
      not translated: missed "all"
  ! resting
      it is paused, and a Job Scheduler is always active
  + 1 delayed jobs
1 Job Schedulers, 1 delayed jobs to move
`);
    expect((await cli.run('export', '--to', 'bullmq', 'q')).code).toBe(2);
    expect(await cli.text('export', '--to', 'bullmq', 'q', '--yes')).toContain(
      'moved 1 Job Schedulers, 1 delayed jobs',
    );
    expect(await idsOf(queue)).toEqual(['resting']);
    // And back again.
    expect(await cli.json('import', 'bullmq', 'q', '--yes')).toMatchObject({
      applied: true,
      schedulers: [{ id: 'nightly', kind: 'added' }],
      delayed: { moved: 1, renamed: 0 },
    });
    expect((await cli.run('export', '--to', 'bullmq')).stderr).toContain('queue is missing');
  });
});
