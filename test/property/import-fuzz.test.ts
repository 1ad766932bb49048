import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readManifests } from '../../src/cli/import-k8s.js';
import { readScheduleFile } from '../../src/cli/schedule-file.js';
import { importCronJob } from '../../src/domain/import-cronjob.js';
import { importCrontab } from '../../src/domain/import-crontab.js';
import { importExpressions } from '../../src/domain/import-expressions.js';
import { type SeededRandom, seededRandom } from './seeded-random.js';

const ROUNDS = 500;
const OPTIONS = { now: Date.UTC(2026, 0, 1) };
const EXAMPLE = readFileSync(new URL('../../examples/schedules.yaml', import.meta.url), 'utf8');
const data = (path: string) => readFileSync(new URL(`../data/corpus/${path}`, import.meta.url), 'utf8');
const PIECES = [
  '*',
  '?',
  "'",
  '"',
  ':',
  '-',
  '\n',
  '  ',
  '{',
  '}',
  '[',
  '&a',
  '*a',
  '@',
  '%',
  'null',
  '~',
  '0',
  '1e9',
  '\u0000',
  'é',
  'tz',
  'TZ=',
];

const OTHERS = [null, 0, -1, 1.5, '', 'x', [], {}, true, Number.NaN, '0 0 * * *', [null], undefined];

/** A text with some characters lost, doubled or replaced. */
function damaged(text: string, random: SeededRandom): string {
  let result = text;
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(result.length + 1);
    const piece = random.below(10) < 3 ? '' : random.pick(PIECES);
    result = result.slice(0, at) + piece + result.slice(at + random.below(6));
  }
  return result;
}

/** A value with one of its parts replaced by something else, wherever that is. */
function bent(value: unknown, random: SeededRandom): unknown {
  if (random.below(7) === 0 || typeof value !== 'object' || value === null) return random.pick(OTHERS);
  const keys = Object.keys(value);
  if (keys.length === 0) return random.pick(OTHERS);
  const key = random.pick(keys);
  const part = bent((value as Record<string, unknown>)[key], random);
  return Array.isArray(value)
    ? value.map((item, i) => (`${i}` === key ? part : item))
    : { ...value, [key]: part };
}

test('a damaged file of schedules is read or refused with its lines, and never throws', () => {
  const random = seededRandom(1);
  let refused = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const { problems } = readScheduleFile('f.yaml', damaged(EXAMPLE, random));
    for (const problem of problems) expect(problem).toMatch(/^f\.yaml:\d+: /);
    if (problems.length > 0) refused++;
  }
  expect(refused).toBeGreaterThan(ROUNDS / 4);
});

test('a damaged crontab loses lines, nothing else', () => {
  const random = seededRandom(2);
  const text = data('crontabs/10-nightly-staggered.crontab');
  for (let i = 0; i < ROUNDS / 5; i++) {
    const broken = damaged(text, random);
    for (const { line } of importCrontab(broken)) expect(line).toBeLessThanOrEqual(broken.split('\n').length);
  }
});

test('a damaged manifest is imported or refused', () => {
  const random = seededRandom(3);
  const text = data('k8s/05-forbid-deadlines.yaml');
  for (let i = 0; i < ROUNDS; i++) {
    for (const found of readManifests(damaged(text, random), OPTIONS).imported) {
      if (found.kind === 'refused') expect(found.reason).not.toBe('');
    }
  }
});

test('a bent CronJob is imported, refused, or none', () => {
  const random = seededRandom(4);
  const documents = parseAllDocuments(data('k8s/07-suspended-nickname.yaml')) as { toJS(): unknown }[];
  const whole = documents[0]?.toJS();
  const kinds = new Set<string | undefined>();
  for (let i = 0; i < ROUNDS; i++) {
    const kept = { ...(bent(whole, random) as object), kind: 'CronJob', apiVersion: 'batch/v1' };
    kinds.add(importCronJob(kept, 1, OPTIONS)?.kind);
    importCronJob(bent(whole, random), 1, OPTIONS);
  }
  expect(kinds).toEqual(new Set(['schedule', 'refused']));
});

test('damaged expressions are translated or refused', () => {
  const random = seededRandom(5);
  for (let i = 0; i < ROUNDS; i++) {
    importExpressions(damaged('a=0 0/5 14 ? * 2-6\nb=0 15 10 L-2 * ?', random), { dialect: 'quartz' });
    importExpressions(damaged('a=0 0 9 * * MON-FRI\nb=@daily', random), { dialect: 'spring' });
    importExpressions(
      damaged('a=cron(0/5 8-17 ? * MON-FRI *)\nb=rate(5 minutes)\nc=at(2027-01-31T09:12:00)', random),
      {
        dialect: 'eventbridge',
      },
    );
  }
});
