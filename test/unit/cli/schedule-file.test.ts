import { describe, expect, test } from 'vitest';
import { schedulesYaml } from '../../../src/cli/export-yaml.js';
import { readScheduleFile } from '../../../src/cli/schedule-file.js';
import type { ScheduleInfo } from '../../../src/client/schedule-info.js';
import { checkSchedule } from '../../../src/domain/check-schedule.js';

const file = (...schedules: string[]) => `queues:\n  q:\n${schedules.map((one) => `    ${one}\n`).join('')}`;
const paused = (written: string) => {
  const { entries, problems } = readScheduleFile(
    'f.yaml',
    file(`a: {every: 15m, missed: skip, paused: ${written}}`),
  );
  return entries[0]?.wanted ?? problems;
};

describe('paused', () => {
  test.each([
    'no',
    'off',
    'No',
    'n',
    '"false"',
    "'no'",
    'yes',
    'on',
    'y',
    '"true"',
    '0',
    '1',
    '"1"',
    '~',
    '" no "',
  ])('is neither true nor false nor a reason: %s', (written) => {
    expect(paused(written)).toEqual([
      expect.stringMatching(
        /^f\.yaml:3: q\.a: paused .* is neither .*; write true, false, or why it is paused$/,
      ),
    ]);
  });

  test('is what it says otherwise', () => {
    expect(paused('false')).toMatchObject({ paused: false });
    expect(paused('True')).toMatchObject({ paused: true });
    expect(paused('no new host yet')).toMatchObject({ paused: true, note: 'no new host yet' });
    expect(paused('{ note: no }')).toMatchObject({ paused: true, note: 'no' });
    for (const written of ['{}', '{ note: "" }', '{ note: x, by: y }', '[x]']) {
      expect(paused(written)).toEqual([expect.stringContaining('why it is paused')]);
    }
  });

  test.each(['no', 'true', '1', 'until the host is up', ''])(
    'the note %j comes back from an export',
    (note) => {
      const info = {
        id: 'a',
        definition: checkSchedule({ every: '15m', missed: 'skip' }, 'q:a'),
        template: { name: 'a', data: {}, opts: {} },
        state: 'paused',
        note: note === '' ? undefined : note,
      } as unknown as ScheduleInfo;
      const { entries, problems } = readScheduleFile('f.yaml', schedulesYaml(new Map([['q', [info]]])));
      expect(problems).toEqual([]);
      expect(entries[0]?.wanted.paused).toBe(true);
      expect(entries[0]?.wanted.note).toBe(info.note);
    },
  );
});

describe('merge keys', () => {
  test('a schedule may be another one with other options', () => {
    const { entries, problems } = readScheduleFile(
      'f.yaml',
      file(
        'a: &a {every: 15m, missed: skip, template: &t {name: x, data: {one: 1}}}',
        'b: {missed: latest, <<: *a, template: {<<: *t, name: y}}',
      ),
    );
    expect(problems).toEqual([]);
    expect(
      entries.map(({ wanted: { policies, template } }) => [policies.missed, policies.every, template]),
    ).toEqual([
      ['skip', 900_000, { name: 'x', data: { one: 1 } }],
      ['latest', 900_000, { name: 'y', data: { one: 1 } }],
    ]);
  });

  test('what is wrong with what is merged is told where it is merged', () => {
    const { problems } = readScheduleFile(
      'f.yaml',
      file('a: &a {every: 15m, missed: skip}', 'b: {<<: *a, oops: 1}', 'c: {<<: 3}'),
    );
    expect(problems).toEqual([expect.stringMatching(/^f\.yaml:5: << merges mappings/)]);
    const { problems: later } = readScheduleFile(
      'f.yaml',
      file('a: &a {every: 15m, missed: skip, oops: 1}', 'b: {<<: *a}'),
    );
    expect(later.map((problem) => problem.slice(0, 12))).toEqual(['f.yaml:3: q.', 'f.yaml:4: q.']);
  });
});
