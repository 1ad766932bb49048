import { describe, expect, test } from 'vitest';
import { readManifests } from '../../../src/cli/import-k8s.js';
import type { ImportedSchedule } from '../../../src/domain/imported.js';

const OPTIONS = { now: Date.UTC(2026, 0, 1) };

function schedules(text: string): ImportedSchedule[] {
  return readManifests(text, OPTIONS).imported.map((found) => {
    if (found.kind !== 'schedule') throw new Error(found.reason);
    return found;
  });
}

function refusals(text: string): string[] {
  const { imported } = readManifests(text, OPTIONS);
  return imported.map((found) => `${found.line}: ${found.kind === 'refused' ? found.reason : found.id}`);
}

function containersOf({ template }: ImportedSchedule): unknown {
  const data = template.data as { jobTemplate: { spec: { template: { spec: { containers: unknown } } } } };
  return data.jobTemplate.spec.template.spec.containers;
}

const JOB =
  '{spec: {template: {spec: {restartPolicy: Never, containers: [&c {name: a, image: x, tty: on, args: ["yes"]}, {<<: *c, name: b}]}}}}';
const aCronJob = (name: string, spec = '') =>
  `{apiVersion: batch/v1, kind: CronJob, metadata: {name: ${name}}, spec: {schedule: '0 4 * * *', ${spec} jobTemplate: ${JOB}}}`;
const aJson = (name: string, more: object = {}) => {
  const spec = { restartPolicy: 'Never', containers: [{ name: 'a{', image: '"}' }] };
  const jobTemplate = { spec: { template: { spec } } };
  return JSON.stringify(
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name },
      spec: { schedule: '0 4 * * *', jobTemplate, ...more },
    },
    null,
    1,
  );
};

describe('merge keys', () => {
  test('an item of a list may be another one with other parts', () => {
    const text = `kind: List\nitems:\n- &one ${aCronJob('one')}\n- <<: *one\n  metadata: {name: two}\n`;
    expect(schedules(text).map(({ id }) => id)).toEqual(['one', 'two']);
    expect(readManifests(text, OPTIONS).others).toBe(0);
  });

  test('what is written wins over what is merged, before it or behind it; of a list the earlier does', () => {
    const spec = `&d {schedule: '0 4 * * *', suspend: true, jobTemplate: ${JOB}}`;
    const head = (name: string) => `apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: ${name}}\n`;
    const merged = [
      "{<<: *d, schedule: '1 * * * *'}",
      "{schedule: '2 * * * *', <<: *d}",
      "{<<: [{schedule: '3 * * * *'}, *d]}",
      '{<<: {<<: *d, suspend: false}}',
    ];
    const items = [spec, ...merged].map(
      (one, i) => `- ${head(`n${i}`).replaceAll('\n', '\n  ')}spec: ${one}\n`,
    );
    const found = schedules(`kind: List\nitems:\n${items.join('')}`);
    expect(found.map(({ definition }) => definition.cron)).toEqual([
      '0 4 * * *',
      '1 * * * *',
      '2 * * * *',
      '3 * * * *',
      '0 4 * * *',
    ]);
    expect(found.map(({ paused }) => paused)).toEqual([true, true, true, true, false]);
  });

  test('the run carries what was merged, not how', () => {
    expect(schedules(aCronJob('one')).map(containersOf)).toEqual([
      [
        { name: 'a', image: 'x', tty: true, args: ['yes'] },
        { name: 'b', image: 'x', tty: true, args: ['yes'] },
      ],
    ]);
  });

  test('what is no mapping is refused with its line', () => {
    expect(refusals('kind: List\na: &a 3\nitems:\n- <<: *a\n')).toEqual([
      expect.stringMatching(/^4: it is no YAML: << merges mappings/),
    ]);
    expect(refusals('kind: List\nitems:\n- <<: *a\n')).toEqual([
      expect.stringMatching(/^3: .*\*a names nothing/),
    ]);
  });

  test('many may share one anchor', () => {
    const more = Array.from({ length: 300 }, (_, i) => `- {<<: *one, metadata: {name: n${i}}}\n`);
    expect(schedules(`kind: List\nitems:\n- &one ${aCronJob('one')}\n${more.join('')}`)).toHaveLength(301);
  });
});

describe('booleans as kubectl reads them', () => {
  test.each([
    ['yes', true],
    ['On', true],
    ['Y', true],
    ['TRUE', true],
    ['no', false],
    ['OFF', false],
    ['n', false],
  ])('suspend: %s', (word, paused) => {
    expect(schedules(aCronJob('one', `suspend: ${word},`))[0]?.paused).toBe(paused);
  });

  test('a text in quotes is none, nor is any other word', () => {
    for (const word of ['"yes"', "'no'", '!!str no', 'yEs', 'maybe', '1']) {
      expect(refusals(aCronJob('one', `suspend: ${word},`))).toEqual([
        expect.stringContaining('spec.suspend: '),
      ]);
    }
    expect(refusals(aJson('one', { suspend: 'yes' }))).toEqual([expect.stringContaining('spec.suspend: ')]);
  });

  test('the same words elsewhere are texts', () => {
    const text = aCronJob('one').replace('{name: one}', '{name: one, labels: {answer: no}}');
    expect(schedules(text)[0]?.definition.tags).toEqual(['answer=no']);
  });
});

describe('JSON', () => {
  test.each(['\n', '', '\n\n', '\n---\n'])('objects with %j between them', (between) => {
    expect(schedules(`${aJson('one')}${between}${aJson('two')}\n`).map(({ id }) => id)).toEqual([
      'one',
      'two',
    ]);
  });

  test('each has its line', () => {
    const lines = aJson('one').split('\n').length;
    expect(refusals(`\n${aJson('one')}\n${aJson('two', { suspend: 3 })}`)).toEqual([
      '2: one',
      expect.stringMatching(`^${lines + 2}: spec.suspend`),
    ]);
  });

  test('a mapping of YAML begins with { too, and one that breaks off is told of', () => {
    expect(schedules(`${aCronJob('one')}\n---\n${aCronJob('two')}\n`)).toHaveLength(2);
    expect(refusals(`${aJson('one')}\n{"kind": `)).toEqual([expect.stringContaining('it is no YAML')]);
    expect(readManifests('{}', OPTIONS)).toEqual({ imported: [], others: 1 });
  });
});
