import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { checkSchedule } from '../../../../src/domain/check-schedule.js';
import { compileSchedule } from '../../../../src/domain/fire-times.js';
import { importCronJob } from '../../../../src/domain/import-cronjob.js';
import type { ImportedSchedule } from '../../../../src/domain/imported.js';
import { kubernetesSchedule } from '../../../../src/domain/kubernetes-cron.js';
import { nextFireTimes } from '../../../../src/domain/next-fire-times.js';
import { readCsv, readData } from '../corpus.js';

const OPTIONS = { now: Date.UTC(2026, 0, 1) };
const rows = readCsv('corpus/k8s/expected.csv');

function manifest(row: Record<string, string>): unknown {
  const documents = parseAllDocuments(readData(`corpus/k8s/${row.file}`));
  return (documents as { toJS(): unknown }[])[Number(row.doc) - 1]?.toJS();
}

const OVERLAPS: Record<string, string> = { allow: 'Allow', skip: 'Forbid', cancelOther: 'Replace' };

interface Pod {
  spec: { template: { spec: { restartPolicy: string; containers: unknown[] } } };
}

/** Every column of expected.csv, read back from the schedule and from what it lists as not translated. */
function asRow({
  id,
  definition,
  template,
  paused,
  notTranslated,
}: ImportedSchedule): Record<string, string> {
  const opts = template.opts as Record<string, { count: number; age?: number }> & { attempts: number };
  const lost = (name: string) =>
    notTranslated.find((line) => line.startsWith(`${name} `))?.split(/[ :]/)[1] ?? '';
  const seconds = (duration: unknown) =>
    duration === undefined ? '' : `${checkSchedule({ ...definition, grace: `${duration}` }, id).grace ?? 0}`;
  return {
    name: id,
    schedule: definition.cron ?? '',
    timeZone: definition.tz === 'UTC' ? '' : (definition.tz ?? ''),
    concurrencyPolicy: OVERLAPS[`${definition.overlap}`] ?? '',
    startingDeadlineSeconds:
      definition.grace === undefined ? '' : `${Number(seconds(definition.grace)) / 1000}`,
    suspend: `${paused}`,
    successfulJobsHistoryLimit: `${opts.removeOnComplete?.count}`,
    failedJobsHistoryLimit: `${opts.removeOnFail?.count}`,
    backoffLimit: `${opts.attempts - 1}`,
    activeDeadlineSeconds: lost('activeDeadlineSeconds'),
    ttlSecondsAfterFinished: `${opts.removeOnComplete?.age ?? ''}`,
    parallelism: lost('parallelism') || '1',
    completions: lost('completions') || '1',
    restartPolicy: lost('restartPolicy'),
  };
}

function imported(object: unknown): ImportedSchedule {
  const found = importCronJob(object, 1, OPTIONS);
  if (found?.kind !== 'schedule') throw new Error(JSON.stringify(found));
  return found;
}

/** A CronJob with some of its parts replaced; undefined takes a part away. */
function aCronJob(spec: object = {}, job: object = {}, pod: object = {}, metadata: object = {}): unknown {
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'one', ...metadata },
    spec: {
      schedule: '0 4 * * *',
      jobTemplate: {
        spec: {
          template: {
            spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'a:1' }], ...pod },
          },
          ...job,
        },
      },
      ...spec,
    },
  };
}

function reason(object: unknown): string {
  const found = importCronJob(object, 1, OPTIONS);
  return found?.kind === 'refused' ? found.reason : `imported: ${JSON.stringify(found)}`;
}

describe('manifests of the corpus', () => {
  test.each(rows.filter((row) => row.valid === 'yes'))('$file $doc: each column', (row) => {
    const { file, doc, valid, note, ...columns } = row;
    const found = imported(manifest(row));
    expect(asRow(found)).toEqual(columns);
    checkSchedule(found.definition, `q:${found.id}`);
  });

  test.each(rows.filter((row) => row.valid === 'no'))('$file $doc: $name is refused, $note', (row) => {
    const reasons: Record<string, string> = {
      'prefix-cron-tz': 'write timeZone',
      'prefix-tz-and-field': 'write timeZone',
      'bad-zone': "did you mean 'Asia/Shanghai'?",
      'bad-policy': 'case sensitive',
      'six-fields': 'Kubernetes takes five',
      unexpanded: 'template variable',
      'negative-deadline': 'zero or more',
    };
    expect(importCronJob(manifest(row), 1, OPTIONS)).toMatchObject({ kind: 'refused', text: row.name });
    expect(reason(manifest(row))).toContain(reasons[`${row.name}`]);
  });

  test('the run carries the jobTemplate as it was', () => {
    const { template } = imported(manifest({ file: '01-minimal.yaml', doc: '1' }));
    const { jobTemplate } = template.data as { jobTemplate: Pod };
    expect(template.name).toBe('run-cron-job');
    expect(jobTemplate.spec.template.spec.containers).toEqual([
      { name: 'main', image: 'registry.example.org/tools/runner:1', command: ['/bin/run'], args: ['alpha'] },
    ]);
  });

  test('a deadline under 10 s is told of, as are Forbid and Replace', () => {
    expect(imported(manifest({ file: '04-replace-deadline-zero.yaml', doc: '1' })).warnings).toEqual([
      expect.stringMatching(/^Replace: /),
      expect.stringMatching(/^startingDeadlineSeconds 0: /),
    ]);
    expect(imported(manifest({ file: '02-forbid.yaml', doc: '1' })).warnings).toEqual([
      expect.stringMatching(/^Forbid: .*bufferOne/),
    ]);
  });
});

describe('lateness', () => {
  test('without a deadline the newest missed run starts however late; with one, no later', () => {
    expect(imported(aCronJob()).definition).toMatchObject({ missed: 'latest', catchupWindow: '3650d' });
    expect(imported(aCronJob()).definition.grace).toBeUndefined();
    expect(imported(aCronJob({ startingDeadlineSeconds: 90 })).definition).toMatchObject({
      missed: 'latest',
      grace: '1m30s',
      catchupWindow: '1m30s',
    });
  });

  test('a deadline longer than a grace can be bounds the catching up alone', () => {
    const { definition } = imported(aCronJob({ startingDeadlineSeconds: 31_536_000 }));
    expect(definition).toMatchObject({ catchupWindow: '365d' });
    expect(definition.grace).toBeUndefined();
  });
});

test('a run past activeDeadlineSeconds holds up no later one, and is not ended: both are told', () => {
  const found = imported(aCronJob({}, { activeDeadlineSeconds: 5400 }));
  expect(found.definition.runTimeout).toBe('1h30m');
  expect(found.notTranslated).toContainEqual(
    expect.stringMatching(/^activeDeadlineSeconds 5400: no run is ended/),
  );
  for (const activeDeadlineSeconds of [0, 31_536_000]) {
    expect(imported(aCronJob({}, { activeDeadlineSeconds })).definition.runTimeout).toBeUndefined();
  }
});

describe('where clocks change', () => {
  const warned = (schedule: string, timeZone?: string) =>
    imported(aCronJob({ schedule, ...(timeZone === undefined ? {} : { timeZone }) })).warnings.filter(
      (warning) => /^when clocks change, Kubernetes .* gap skip and fold both/.test(warning.replace('(', '')),
    ).length;

  test.each([
    ['30 1 * * *', 'Europe/London'],
    ['30 2 * * 0', 'America/New_York'],
    ['0 0-6/2 * * *', 'America/New_York'],
    ['30 2 25-31 10 *', 'Antarctica/Troll'],
    ['30 1 28 3 *', 'Europe/London'],
  ])('%s in %s is warned of', (schedule, timeZone) => {
    expect(warned(schedule, timeZone)).toBe(1);
  });

  test.each([
    ['30 1 * * *', undefined],
    ['30 1 * * *', 'Asia/Tokyo'],
    ['30 9 * * *', 'Europe/London'],
    ['30 1 * 6 *', 'Europe/London'],
    ['30 1 * * 1', 'Europe/London'],
    ['*/5 * * * *', 'Europe/London'],
    ['@hourly', 'Europe/London'],
    ['@every 1h', 'Europe/London'],
  ])('%s in %s is not', (schedule, timeZone) => {
    expect(warned(schedule, timeZone)).toBe(0);
  });
});

describe('names, labels, history', () => {
  test('an id may hold the namespace, which keeps one name in several of them apart', () => {
    const options = { ...OPTIONS, namespaceIds: true };
    const idIn = (metadata: object) => {
      const found = importCronJob(aCronJob({}, {}, {}, metadata), 1, options);
      return found?.kind === 'schedule' ? found.id : found;
    };
    expect(idIn({ namespace: 'tools' })).toBe('tools.one');
    expect(idIn({})).toBe('one');
    const refused = aCronJob({ schedule: '' }, {}, {}, { namespace: 'tools' });
    expect(importCronJob(refused, 1, options)).toMatchObject({
      kind: 'refused',
      text: 'one',
      ids: ['tools.one'],
    });
  });

  test('namespace and labels become tags', () => {
    const found = imported(aCronJob({}, {}, {}, { namespace: 'tools', labels: { app: 'x', tier: 1 } }));
    expect(found.definition.tags).toEqual(['namespace=tools', 'app=x', 'tier=1']);
  });

  test('a label that no tag can hold is listed', () => {
    const found = imported(aCronJob({}, {}, {}, { labels: { app: 'x', long: 'y'.repeat(100) } }));
    expect(found.definition.tags).toEqual(['app=x']);
    expect(found.notTranslated[1]).toMatch(/^label long: /);
  });

  test('ttlSecondsAfterFinished is the age of kept runs', () => {
    const { opts } = imported(aCronJob({}, { ttlSecondsAfterFinished: 3600, backoffLimit: 0 })).template;
    expect(opts).toEqual({
      attempts: 1,
      removeOnComplete: { count: 3, age: 3600 },
      removeOnFail: { count: 1, age: 3600 },
    });
  });

  test('retries wait as Kubernetes has them wait; its ceiling is listed where it matters', () => {
    expect(imported(aCronJob()).template.opts).toMatchObject({
      attempts: 7,
      backoff: { type: 'exponential', delay: 10_000 },
    });
    expect(imported(aCronJob()).notTranslated).toHaveLength(1);
    expect(imported(aCronJob({}, { backoffLimit: 7 })).notTranslated[1]).toMatch(/^back-off ceiling/);
  });

  test('fields of a Job without a meaning here are listed', () => {
    expect(
      imported(aCronJob({}, { podFailurePolicy: {}, completionMode: 'Indexed' })).notTranslated.slice(1),
    ).toEqual(['podFailurePolicy: has no meaning here', 'completionMode: has no meaning here']);
  });

  test('the zone of the controller is not known: it is UTC unless one is given', () => {
    expect(imported(aCronJob()).definition.tz).toBe('UTC');
    expect(importCronJob(aCronJob(), 1, { ...OPTIONS, tz: 'Asia/Tokyo' })).toMatchObject({
      definition: { tz: 'Asia/Tokyo' },
    });
    expect(imported(aCronJob({ timeZone: null, suspend: null })).definition.tz).toBe('UTC');
  });
});

test('an empty word of an optional field is as none', () => {
  for (const empty of ['', null]) {
    expect(imported(aCronJob({ concurrencyPolicy: empty })).definition.overlap).toBe('allow');
    const object = aCronJob({}, {}, {}, { namespace: empty });
    expect(imported(object).definition.tags).toBeUndefined();
    expect(importCronJob(object, 1, { ...OPTIONS, namespaceIds: true })).toMatchObject({ id: 'one' });
  }
});

describe('what the API server refuses', () => {
  test.each([
    ['apiVersion', { ...(aCronJob() as object), apiVersion: 'v1' }],
    ['metadata.name', aCronJob({}, {}, {}, { name: undefined, generateName: 'x-' })],
    ['metadata.name', aCronJob({}, {}, {}, { name: 'Upper' })],
    ['metadata.name', aCronJob({}, {}, {}, { name: 'x'.repeat(53) })],
    ['spec.timezone', aCronJob({ timezone: 'Asia/Tokyo' })],
    ['spec.schedule', aCronJob({ schedule: undefined })],
    ['spec.schedule', aCronJob({ schedule: '' })],
    ['spec.timeZone', aCronJob({ timeZone: '' })],
    ['spec.timeZone', aCronJob({ timeZone: 'local' })],
    ['spec.concurrencyPolicy', aCronJob({ concurrencyPolicy: false })],
    ['spec.suspend', aCronJob({ suspend: 'yes' })],
    ['spec.startingDeadlineSeconds', aCronJob({ startingDeadlineSeconds: '60' })],
    ['spec.successfulJobsHistoryLimit', aCronJob({ successfulJobsHistoryLimit: -1 })],
    ['spec.failedJobsHistoryLimit', aCronJob({ failedJobsHistoryLimit: 1.5 })],
    ['spec.jobTemplate', aCronJob({ jobTemplate: undefined })],
    ['backoffLimit', aCronJob({}, { backoffLimit: -1 })],
    ['activeDeadlineSeconds', aCronJob({}, { activeDeadlineSeconds: '10' })],
    ['parallelism', aCronJob({}, { parallelism: -1 })],
    ['restartPolicy', aCronJob({}, {}, { restartPolicy: 'Always' })],
    ['restartPolicy', aCronJob({}, {}, { restartPolicy: undefined })],
    ['restartPolicy', aCronJob({}, {}, { restartPolicy: '' })],
    ['containers', aCronJob({}, {}, { containers: [] })],
  ])('%s', (field, object) => {
    expect(reason(object)).toMatch(new RegExp(`^${field.replaceAll('.', '\\.')}: `));
  });

  test.each([
    ['europe/london', 'Europe/London'],
    ['utc', 'UTC'],
    ['Utc', 'UTC'],
    ['america/port-au-prince', 'America/Port-au-Prince'],
    ['ETC/UTC', 'Etc/UTC'],
  ])('the time zone %s, whose letters are not those of %s', (timeZone, right) => {
    expect(reason(aCronJob({ timeZone }))).toMatch(/^spec\.timeZone: .* unknown \(it is case sensitive\)/);
    expect(reason(aCronJob({ timeZone }))).toMatch(new RegExp(`; write ${right}$`));
    expect(imported(aCronJob({ timeZone: right })).definition.tz).toBe(right);
  });

  test.each([
    '0 4 * * 7',
    '0 4 * * MONDAY',
    '0 24 * * *',
    '0 4 L * *',
    '0 22-2 * * *',
    '*/0 * * * *',
    '0 4 15W * *',
    'H 4 * * *',
    '0 4 , * *',
    '@reboot',
    '@Daily',
    '@every 5 minutes',
  ])('the schedule %s', (schedule) => {
    expect(reason(aCronJob({ schedule }))).toMatch(/^spec\.schedule: /);
  });

  test('a schedule that only ours refuses is told of as it is written', () => {
    expect(reason(aCronJob({ schedule: '0 0005 * * *' }))).toMatch(
      /^spec\.schedule "0 0005 \* \* \*": hour: 0005/,
    );
    expect(reason(aCronJob({ schedule: '0 0005 */4 * 1' }))).toMatch(
      /^spec\.schedule "0 0005 \*\/4 \* 1", which is cron "0 0005 1-31\/4 \* 1": hour: /,
    );
  });

  test('other kinds are none of ours', () => {
    for (const object of [undefined, null, 'x', [], { kind: 'Deployment' }]) {
      expect(importCronJob(object, 1, OPTIONS)).toBeUndefined();
    }
  });
});

describe('a step beyond its range names the first value in Kubernetes', () => {
  test.each([
    ['*/60 * * * *', '0 * * * *', 'minute: */60'],
    ['?/90 4 * * *', '0 4 * * *', 'minute: ?/90'],
    ['0 */24 * * *', '0 0 * * *', 'hour: */24'],
    ['50/30 4 * * *', '50 4 * * *', 'minute: 50/30'],
    ['0 4 */31 * *', '0 4 1 * *', 'day of month: */31'],
    ['0 4 */40 * 1', '0 4 1 * 1', 'day of month: */40'],
    ['0 4 15 * */7', '0 4 15 * 0', 'day of week: */7'],
    ['0 4 * * 1/6', '0 4 * * 1', 'day of week: 1/6'],
    ['0 4 * jan-mar/3 *', '0 4 * jan *', 'month: jan-mar/3'],
  ])('%s is %s, and told of', (schedule, cron, written) => {
    expect(imported(aCronJob({ schedule }))).toMatchObject({
      definition: { cron },
      warnings: [expect.stringMatching(new RegExp(`^${written.replace(/[*?]/g, '\\$&')}: .*Kubernetes`))],
    });
  });

  test('one within its range does not', () => {
    for (const schedule of ['*/59 * * * *', '0 4 */30 * *', '0 4 * * */6', '5/1 4 * * *'])
      expect(imported(aCronJob({ schedule }))).toMatchObject({
        definition: { cron: schedule },
        warnings: [],
      });
  });
});

describe('expressions as Kubernetes reads them', () => {
  const fires = (schedule: string, count: number) => {
    const read = kubernetesSchedule(schedule);
    if ('refused' in read) throw new Error(read.refused);
    return nextFireTimes(read.timing, { after: '2026-01-01T00:00:00Z', count }).map((time) =>
      time.toISOString().slice(5, 16),
    );
  };

  test('a stepped star in a day field is a restriction: either field suffices', () => {
    // 1, 11, 21, 31 January and Mondays.
    expect(fires('0 4 */10 * 1', 7)).toEqual([
      '01-01T04:00',
      '01-05T04:00',
      '01-11T04:00',
      '01-12T04:00',
      '01-19T04:00',
      '01-21T04:00',
      '01-26T04:00',
    ]);
  });

  test('a bare star anywhere in a day field leaves the other one to decide', () => {
    expect(fires('0 4 5,* * 1', 2)).toEqual(['01-05T04:00', '01-12T04:00']);
    expect(fires('0 4 5 * ?', 2)).toEqual(['01-05T04:00', '02-05T04:00']);
    expect(fires('0 4 */1 * 1', 2)).toEqual(['01-05T04:00', '01-12T04:00']);
  });

  test('? is any value in each field, a start may have a step, empty items are dropped', () => {
    expect(fires('? 4 * * ?', 2)).toEqual(['01-01T04:00', '01-01T04:01']);
    expect(fires('20/15 4 * * *', 3)).toEqual(['01-01T04:20', '01-01T04:35', '01-01T04:50']);
    expect(fires('1,,2 4 * * *', 2)).toEqual(['01-01T04:01', '01-01T04:02']);
  });

  test('@every is rounded to whole seconds', () => {
    expect(kubernetesSchedule('@every 1h30m')).toMatchObject({ timing: { every: '1h30m' } });
    expect(kubernetesSchedule('@every 1.5h')).toMatchObject({ timing: { every: '1h30m' } });
    expect(kubernetesSchedule('@every 300ms')).toMatchObject({ timing: { every: '1s' } });
    expect(kubernetesSchedule('@every 2s900ms')).toMatchObject({ timing: { every: '2s' } });
  });

  test('the usual ones come out as they went in', () => {
    for (const schedule of ['*/5 * * * *', '0 8 * * 1-5', '0,30 1-9/2 1,15 jan-mar *', '@weekly']) {
      expect(kubernetesSchedule(schedule)).toEqual({ timing: { cron: schedule }, warnings: [] });
      expect(compileSchedule({ cron: schedule }).warnings).toEqual([]);
    }
  });
});
