import { FlowProducer } from 'bullmq';
import { describe, expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { bullmqPair } from '../support/bullmq-pair.js';
import { onCleanup } from '../support/cleanup.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { readCsv, readData } from '../unit/domain/corpus.js';
import { InProcessCli, idsOf } from './cli-in-process.js';

const HOUR = 3_600_000;

function setUp(task: { name: string }, queueName: string) {
  const cli = new InProcessCli(namespaceFor(task));
  const queue = new Queue(queueName, { connection: sharedRedisUrl(), prefix: cli.prefix });
  onCleanup('queue', () => queue.close());
  return { cli, queue };
}

/** Every key that the command line may have written; BullMQ’s note in its queue is the test’s own. */
async function keysOf(queue: Queue, prefix: string): Promise<string[]> {
  const keys = await queue.backend.shard.client.keys(`*${prefix}*`);
  return keys.filter((key) => key !== queue.toKey('meta'));
}

describe('import crontab', () => {
  const text =
    'MAILTO=ops\n*/5 7-21 * * * /opt/refresh\n@reboot /opt/start\nCRON_TZ=Asia/Tokyo\n0 9 * * 1-5 /opt/report%go\n';

  test('shows, writes, and the second time finds nothing to do', async ({ task }) => {
    const { cli, queue } = setUp(task, 'crontab');
    const file = cli.file('alice', text);
    const shown = await cli.text('import', 'crontab', file, '--tz', 'Europe/London', '--dry-run');
    expect(shown.replace(/-[a-z0-9]{6} /g, '-# ')).toBe(`queue crontab
  + opt-refresh-#  */5 7-21 * * * Europe/London  (alice:2)
  + opt-report-#  0 9 * * 1-5 Asia/Tokyo  (alice:5)
refused
  ! alice:3  @reboot /opt/start
      start-up event, no clock time
not translated
  MAILTO=ops: no output is sent by mail  (2 schedules)
2 to add, 0 to change, 0 unchanged, 1 refused
`);
    expect(await keysOf(queue, cli.prefix)).toEqual([]);

    const args = ['import', 'crontab', file, '--tz', 'Europe/London'];
    expect(await cli.text(...args, '--yes')).toContain('applied 2 changes');
    const [refresh, report] = await idsOf(queue);
    expect(await queue.schedules.get(`${refresh}`).describe()).toMatchObject({
      definition: { cron: ['*/5 7-21 * * *'], tz: 'Europe/London', missed: 'skip', overlap: 'allow' },
      template: { name: 'run-command', data: { command: '/opt/refresh', env: { MAILTO: 'ops' } } },
    });
    expect((await queue.schedules.get(`${report}`).describe())?.template.data).toEqual({
      command: '/opt/report',
      stdin: 'go',
      env: { MAILTO: 'ops' },
    });
    expect(await cli.text(...args)).toContain('0 to add, 0 to change, 2 unchanged, 1 refused');
  });

  test('what differs is told option by option, and only that is written', async ({ task }) => {
    const { cli, queue } = setUp(task, 'crontab');
    await cli.text('import', 'crontab', cli.file('t', text), '--yes');
    const before = await queue.schedules.get(`${(await idsOf(queue))[0]}`).describe();
    const edited = cli.file('t', text.replace('0 9 * * 1-5', '30 9 * * 1-5'));
    const shown = await cli.text('import', 'crontab', edited, '--yes');
    expect(shown).toContain('      cron: "0 9 * * 1-5" → "30 9 * * 1-5"\n');
    expect(shown).toContain('0 to add, 1 to change, 1 unchanged, 1 refused\napplied 1 changes\n');
    expect(await queue.schedules.get(`${before?.id}`).describe()).toEqual(before);
  });

  test('every file of the corpus, in one call', async ({ task }) => {
    const { cli, queue } = setUp(task, 'all');
    const names = [
      '01-user-basic',
      '04-several-zones',
      '05-percent-signs',
      '07-windows-bom-crlf',
      '08-odd-environment',
    ];
    const files = names.map((name) => cli.file(name, readData(`corpus/crontabs/${name}.crontab`)));
    const entries = readCsv('corpus/crontabs/expected-lines.csv').filter(
      ({ file, kind, schedule }) =>
        kind === 'entry' && schedule !== '@reboot' && names.includes(`${file}`.split('.')[0] ?? ''),
    );
    const report = await cli.json('import', 'crontab', ...files, '--queue', 'all', '--yes');
    // /opt/jobs/weekly.sh stands in two of them.
    expect(report).toMatchObject({ applied: true, added: entries.length - 1, changed: 0, failures: [] });
    expect(report.refusals).toContainEqual(
      expect.objectContaining({ reason: expect.stringContaining('01-user-basic:17') }),
    );
    expect(await idsOf(queue)).toHaveLength(entries.length - 1);
    const users = cli.file('02', readData('corpus/crontabs/02-crond-user-column.cron'));
    const system = await cli.json('import', 'crontab', users, '--user-column', '--queue', 'all', '--yes');
    expect(system).toMatchObject({ added: 8, refused: 2 });
  });

  test('two files with one command: the second is refused, unless a prefix keeps them apart', async ({
    task,
  }) => {
    const { cli, queue } = setUp(task, 'crontab');
    const [a, b] = [cli.file('a', '0 5 * * * run\n'), cli.file('b', '0 6 * * * run\n')];
    const shown = await cli.text('import', 'crontab', a, b, '--yes');
    expect(shown).toContain('its id is taken by a:1');
    await cli.text('import', 'crontab', b, '--id-prefix', 'b-', '--yes');
    expect((await idsOf(queue)).map((id) => id.replace(/[a-z0-9]{6}$/, '#'))).toEqual(['b-run-#', 'run-#']);
  });

  test('a line that is gone is told of, pruned when asked, and never runs what stays twice', async ({
    task,
  }) => {
    const { cli, queue } = setUp(task, 'crontab');
    const tokyo = 'CRON_TZ=Asia/Tokyo\n0 9 * * * report\n';
    const london = 'CRON_TZ=Europe/London\n0 9 * * * report\n';
    await cli.text('import', 'crontab', cli.file('t', tokyo + london), '--yes');
    await cli.text('import', 'crontab', cli.file('other', '0 5 * * * theirs\n'), '--yes');
    await queue.schedules.upsert('by-hand', { cron: '0 5 * * *', missed: 'skip' });
    const zones = async () => {
      const infos = await Promise.all((await idsOf(queue)).map((id) => queue.schedules.get(id).describe()));
      return infos.map((info) => `${info?.template.name} ${info?.definition.tz ?? 'UTC'}`).sort();
    };
    const less = cli.file('t', london);
    const { stdout, stderr } = await cli.run('import', 'crontab', less, '--yes');
    expect(stdout).toContain('0 to add, 0 to change, 1 unchanged\n');
    expect(stderr).toMatch(
      /^1 schedules of earlier imports are gone .*: report-[a-z0-9]{6}; --prune deletes/m,
    );
    expect(await zones()).toHaveLength(4);
    expect(await cli.text('import', 'crontab', less, '--label', 't', '--prune', '--yes')).toMatch(
      / {2}- report-.*\n.*\n.*1 unchanged, 1 to delete\napplied 1 changes/,
    );
    expect(await zones()).toEqual(['by-hand UTC', 'run-command Europe/London', 'run-command UTC']);
  });

  test('a line that is refused now, or moved to another file, is not gone', async ({ task }) => {
    const { cli, queue } = setUp(task, 'crontab');
    await cli.text('import', 'crontab', cli.file('a', '0 5 * * * run\n0 6 * * * moved\n'), '--yes');
    const before = await idsOf(queue);
    await cli.text('import', 'crontab', cli.file('b', '0 6 * * * moved\n'), '--yes');
    const edited = cli.file('a', '0 25 * * * run\n0 7 * * * new\n');
    await cli.text('import', 'crontab', edited, '--label', 'a', '--prune', '--yes');
    expect(await idsOf(queue)).toEqual(expect.arrayContaining(before));
  });

  test('a source without a label prunes nothing: another file may have its name', async ({ task }) => {
    const { cli, queue } = setUp(task, 'crontab');
    await cli.text('import', 'crontab', cli.file('root', '0 5 * * * theirs\n'), '--yes');
    const mine = cli.file('root', '0 6 * * * mine\n');
    const { code, stderr } = await cli.run('import', 'crontab', mine, '--prune', '--yes');
    expect([code, stderr]).toEqual([2, expect.stringContaining('prune needs --label')]);
    expect(await idsOf(queue)).toEqual([expect.stringMatching(/^theirs-/)]);
  });

  test('standard input and a file of another name need a label to be known again', async ({ task }) => {
    const { cli, queue } = setUp(task, 'crontab');
    const label = ['--label', 'web1', '--yes'];
    await cli.text('import', 'crontab', cli.file('a', '0 5 * * * one\n0 6 * * * two\n'), ...label);
    await cli.text('import', 'crontab', cli.file('b', '0 5 * * * one\n'), '--prune', ...label);
    expect(await idsOf(queue)).toEqual([expect.stringMatching(/^one-/)]);
    const long = ['--label', 'x'.repeat(91)];
    const { code, stderr } = await cli.run('import', 'crontab', cli.file('b', ''), ...long);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Give --label with 1 to 90 characters')]);
  });

  test('without a terminal nobody can be asked: nothing is written', async ({ task }) => {
    const { cli, queue } = setUp(task, 'crontab');
    const { code, stdout, stderr } = await cli.run('import', 'crontab', cli.file('t', text));
    expect(code).toBe(2);
    expect(stdout).toContain('2 to add');
    expect(stderr).toMatch(/^error: nothing was written: .*\(USAGE\). Add --yes/);
    expect(await keysOf(queue, cli.prefix)).toEqual([]);
  });

  test.each([
    [['import', 'crontab', '/nowhere/at/all', '--yes'], /cannot be read/],
    [['import', 'crontab', 'x', '--tz', 'local'], /INVALID_TIME_ZONE/],
    [['import', 'crontab', 'x', '--missed', 'never'], /skip, latest, all/],
    [['import', 'crontab', 'x', '--queue', 'a:b'], /INVALID_ID/],
    [['import', 'crontab'], /missing required argument/],
    [['import', 'expressions', 'x', '--queue', 'q'], /dialect/],
    [['import', 'expressions', 'x', '--queue', 'q', '--dialect', 'cron4j'], /quartz, spring, eventbridge/],
  ])('%j is wrong usage', async (args, message) => {
    const { code, stdout, stderr } = await new InProcessCli('t-usage').run(...(args as string[]));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message as RegExp);
    expect(stderr.trimEnd()).not.toContain('\n');
  });

  test('a file of which nothing can be taken is a failure', async ({ task }) => {
    const { cli } = setUp(task, 'crontab');
    const { code, stdout } = await cli.run(
      'import',
      'crontab',
      cli.file('t', '@reboot x\nnonsense\n'),
      '--yes',
    );
    expect(code).toBe(1);
    expect(stdout).toContain('0 to add, 0 to change, 0 unchanged, 2 refused');
  });

  test('a one-time job that has the id has that line refused, before anything is written', async ({
    task,
  }) => {
    const { cli, queue } = setUp(task, 'crontab');
    const file = cli.file('t', '0 5 * * * one\n0 6 * * * two\n');
    const foreseen = await cli.json<{ schedules: { id: string }[] }>('import', 'crontab', file, '--dry-run');
    await queue.add('x', {}, { jobId: `${foreseen.schedules[0]?.id}`, delay: HOUR });
    const { code, stdout } = await cli.run('import', 'crontab', file, '--yes');
    expect(code).toBe(0);
    expect(stdout).toMatch(/refused\n {2}! t:1 .*\n.*has the id/);
    expect(stdout).toContain('applied 1 changes');
    expect(await idsOf(queue)).toEqual([foreseen.schedules[1]?.id]);
  });
});

describe('import k8s', () => {
  const manifest = (name: string) => readData(`corpus/k8s/${name}`);

  test('the corpus: what the API server takes is taken, each column of it or told of', async ({ task }) => {
    const { cli, queue } = setUp(task, 'k8s');
    const names = [
      '01-minimal', '02-forbid', '03-zone-weekdays', '04-replace-deadline-zero', '05-forbid-deadlines', '07-suspended-nickname',
      '08-zone-in-schedule', '10-to-refuse',
    ]; // biome-ignore format: one list
    const files = names.map((name) => cli.file(`${name}.yaml`, manifest(`${name}.yaml`)));
    const { code, stdout, stderr } = await cli.run('import', 'k8s', ...files, '--yes');
    expect(code).toBe(0);
    expect(stdout).toContain('6 to add, 0 to change, 0 unchanged, 7 refused\napplied 6 changes');
    expect(stdout).toContain('  + suspended-nickname  @hourly UTC, paused  (07-suspended-nickname.yaml:1)');
    expect(stdout).toContain('  ! 10-to-refuse.yaml:19  bad-policy\n');
    expect(stdout).toContain('activeDeadlineSeconds 21600');
    expect(stderr).toContain('history limits count the runs of the whole queue');
    expect(await idsOf(queue)).toEqual([
      'forbid-deadlines', 'forbid-short', 'minimal', 'replace-zero', 'suspended-nickname', 'zone-weekdays',
    ]); // biome-ignore format: one list
    expect(await queue.schedules.get('suspended-nickname').describe()).toMatchObject({
      state: 'paused',
      note: 'suspend: true in Kubernetes',
      definition: {
        cron: ['@hourly'],
        overlap: 'allow',
        grace: 200_000,
        catchupWindow: 200_000,
        missed: 'latest',
      },
      template: { opts: { attempts: 5, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } } },
    });
    expect(await cli.text('import', 'k8s', ...files)).toContain(
      '0 to add, 0 to change, 6 unchanged, 7 refused',
    );
  });

  test('a list, JSON, objects of other kinds, and a document that is no YAML', async ({ task }) => {
    const { cli } = setUp(task, 'k8s');
    const job = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'listed' },
      spec: cronSpec('0 5 * * *'),
    };
    const list = cli.file('list.json', JSON.stringify({ kind: 'List', items: [job, { kind: 'Service' }] }));
    const mixed = cli.file('mixed.yaml', `kind: Deployment\n---\na: [\n---\n${manifest('01-minimal.yaml')}`);
    const { stdout, stderr, code } = await cli.run('import', 'k8s', list, mixed, '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toContain('+ listed ');
    expect(stdout).toContain('+ minimal ');
    expect(stdout).toMatch(/! mixed\.yaml:\d+ {2}a document\n {6}it is no YAML/);
    expect(stderr).toContain('2 objects of other kinds were passed over');
  });

  test('a CronJob of the same name in another namespace is not overwritten', async ({ task }) => {
    const { cli } = setUp(task, 'k8s');
    const file = (namespace: string) =>
      cli.file(
        `${namespace}.yaml`,
        manifest('02-forbid.yaml').replace('namespace: tools', `namespace: ${namespace}`),
      );
    await cli.text('import', 'k8s', file('tools'), '--yes');
    const { code, stdout } = await cli.run('import', 'k8s', file('other'), '--yes');
    expect(code).toBe(1);
    expect(stdout).toContain('its id is that of a CronJob of the namespace tools');
  });

  test('one name in two namespaces: refused with a way out, and taken by it', async ({ task }) => {
    const { cli, queue } = setUp(task, 'k8s');
    const one = (namespace: string) => ({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'report', namespace },
      spec: cronSpec('0 5 * * *'),
    });
    const file = cli.file('all.json', JSON.stringify({ kind: 'List', items: [one('a'), one('b')] }));
    const shown = await cli.text('import', 'k8s', file, '--dry-run');
    expect(shown).toContain('its id is taken by all.json:1; give --namespace-ids or another --queue');
    await cli.text('import', 'k8s', file, '--namespace-ids', '--yes');
    expect(await idsOf(queue)).toEqual(['a.report', 'b.report']);
    expect(await cli.text('import', 'k8s', file, '--namespace-ids')).toContain('2 unchanged\n');
  });

  test('the API’s own lists say what their items are', async ({ task }) => {
    const { cli } = setUp(task, 'k8s');
    const items = [{ metadata: { name: 'raw' }, spec: cronSpec('0 5 * * *') }, null];
    const list = { apiVersion: 'batch/v1', kind: 'CronJobList', metadata: { resourceVersion: '1' }, items };
    const others = { apiVersion: 'v1', kind: 'PodList', items: [{ metadata: { name: 'x' } }] };
    const { stdout, stderr } = await cli.run(
      'import',
      'k8s',
      cli.file('raw.json', JSON.stringify(list)),
      cli.file('others.json', JSON.stringify(others)),
      '--dry-run',
    );
    expect(stdout).toContain('  + raw  0 5 * * * UTC  (raw.json:1)\n');
    expect(stderr).toContain('2 objects of other kinds were passed over');
  });

  function cronSpec(schedule: string): object {
    const pod = { restartPolicy: 'Never', containers: [{ name: 'main', image: 'a:1' }] };
    return { schedule, jobTemplate: { spec: { template: { spec: pod } } } };
  }
});

test('import expressions: a properties file in Spring’s notation', async ({ task }) => {
  const { cli, queue } = setUp(task, 'app');
  const file = cli.file('app.properties', '# jobs\nreport.cron=0 0 9 * * MON-FRI\nbad=0 0 0 13 * FRI\n');
  const args = [
    'import',
    'expressions',
    file,
    '--dialect',
    'spring',
    '--queue',
    'app',
    '--tz',
    'Europe/Berlin',
  ];
  const shown = await cli.text(...args, '--yes');
  expect(shown).toContain('  + report.cron  0 9 * * MON-FRI Europe/Berlin  (app.properties:2)\n');
  expect(shown).toContain('Spring fires where both match');
  expect((await queue.schedules.get('report.cron').describe())?.definition).toMatchObject({
    cron: ['0 9 * * MON-FRI'],
    tz: 'Europe/Berlin',
    missed: 'skip',
  });
});

test('import expressions tells of names that are gone', async ({ task }) => {
  const { cli, queue } = setUp(task, 'app');
  const args = ['--dialect', 'quartz', '--queue', 'app', '--yes'];
  await cli.text('import', 'expressions', cli.file('f', 'a = 0 0 5 * * ?\nb = 0 0 6 * * ?\n'), ...args);
  const less = cli.file('f', 'a = 0 0 25 * * ?\n');
  const { stderr } = await cli.run('import', 'expressions', less, ...args);
  expect(stderr).toContain('1 schedules of earlier imports are gone from the source and still stand: b;');
  await cli.run('import', 'expressions', less, ...args, '--label', 'f', '--prune');
  expect(await idsOf(queue)).toEqual(['a']);
});

test('what never fires is told before it is written, also where nothing is there yet', async ({ task }) => {
  const { cli } = setUp(task, 'rules');
  const file = cli.file('rules', 'once=at(2026-01-01T00:00:00)\nleap=cron(0 0 30 2 ? *)\n');
  const args = ['import', 'expressions', file, '--dialect', 'eventbridge', '--queue', 'rules'];
  const told = `warnings
  it never fires: its endDate 2026-01-03T00:00:00.000Z is over  (once)
  this expression never fires: no month it names has such a day  (leap)
`;
  expect(await cli.text(...args, '--dry-run')).toContain(told);
  const other = cli.file('other', 'daily=cron(0 0 * * ? *)\n');
  await cli.text('import', 'expressions', other, ...args.slice(3), '--yes');
  expect(await cli.text(...args, '--yes')).toContain(told);
});

describe('import bullmq', () => {
  test('shows what it would move, moves it, and then finds nothing', async ({ task }) => {
    const { stock, ours, prefix, connection } = await bullmqPair(task);
    const cli = new InProcessCli(prefix);
    await stock.upsertJobScheduler('nightly', { pattern: '30 2 * * *' }, { name: 'invoice' });
    await stock.upsertJobScheduler('run@17', { pattern: '30 3 * * *', tz: 'UTC' }, {});
    await stock.add('x', {}, { delay: HOUR });
    await stock.add('x', {}, { delay: HOUR, jobId: 'mine' });
    const flows = new FlowProducer({ connection, prefix });
    onCleanup('flows', () => flows.close());
    await flows.add({
      name: 'parent',
      queueName: 'q',
      children: [{ name: 'child', queueName: 'q', opts: { delay: HOUR, jobId: 'child' } }],
    });
    const shown = await cli.text('import', 'bullmq', 'q', '--dry-run');
    expect(shown).toContain(
      '  + nightly  30 2 * * * UTC\n      no tz: BullMQ reads it in the zone of whichever host',
    );
    expect(shown).toMatch(/ {2}! run@17\n {6}.*ends like/);
    expect(shown).toContain(
      '  + 2 delayed jobs\n      1 of them have ids that BullMQ made: 17 becomes bull-17\n',
    );
    expect(shown).toContain('  ! 1 stay in BullMQ\n      child: it belongs to a flow\n');
    expect(shown).toContain('1 Job Schedulers, 2 delayed jobs to move\n');
    expect(await ours.backend.shard.client.exists(ours.backend.shard.keys.layout)).toBe(0);
    expect(await stock.getJobSchedulersCount()).toBe(2);

    const { code, stderr } = await cli.run('import', 'bullmq', 'q');
    expect([code, stderr.includes('Add --yes')]).toEqual([2, true]);
    expect(await cli.text('import', 'bullmq', 'q', '--yes')).toContain(
      'moved 1 Job Schedulers, 2 delayed jobs\n',
    );
    expect(await stock.getJobSchedulersCount()).toBe(1);
    expect((await ours.getJob('mine'))?.id).toBe('mine');
    expect((await ours.getJobCounts('delayed')).delayed).toBe(4);
    expect(await cli.json('import', 'bullmq', 'q', '--yes')).toMatchObject({
      applied: false,
      schedulers: [{ id: 'run@17', kind: 'refused' }],
      delayed: { moved: 0, left: 1, ofSchedulers: 1 },
    });
  });

  test('one part only, and an empty queue', async ({ task }) => {
    const { stock, prefix } = await bullmqPair(task);
    const cli = new InProcessCli(prefix);
    await stock.upsertJobScheduler('a', { every: HOUR, startDate: Date.now() + HOUR }, {});
    await stock.add('x', {}, { delay: HOUR });
    expect(await cli.json('import', 'bullmq', 'q', '--delayed', '--yes')).toMatchObject({
      delayed: { moved: 1 },
    });
    expect(await stock.getJobSchedulersCount()).toBe(1);
    expect(await cli.text('import', 'bullmq', 'q', '--schedulers', '--yes')).toContain(
      'moved 1 Job Schedulers\n',
    );
    expect(await cli.text('import', 'bullmq', 'nothing')).toContain(
      '0 Job Schedulers, 0 delayed jobs to move',
    );
  });
});
