import { expect, test } from 'vitest';
import { type ExportableSchedule, exportCrontab } from '../../src/domain/export-crontab.js';
import { importCrontab } from '../../src/domain/import-crontab.js';
import { type SeededRandom, seededRandom } from './seeded-random.js';

const ROUNDS = 3000;
const PIECES = ['\\', '\\', '%', '%', ' ', '\t', 'a', "'", '"', '=', '*', '#', '@', '-', '1', 'é', '\u00a0'];

function aText(random: SeededRandom, pieces = PIECES): string {
  return Array.from({ length: 1 + random.below(6) }, () => random.pick(pieces)).join('');
}

function aSchedule(data: object): ExportableSchedule {
  return {
    id: 'one',
    definition: { cron: ['0 5 * * *'] },
    template: { name: 'run-command', data },
    paused: false,
  };
}

/** What comes back of what was exported; undefined if that was refused. */
function thereAndBack(data: object): unknown {
  const { text, refused } = exportCrontab([aSchedule(data)]);
  const imported = importCrontab(text);
  expect(imported).toHaveLength(1 - refused.length);
  const [back] = imported;
  if (back === undefined) return undefined;
  return back.kind === 'schedule' ? back.template.data : back;
}

test('a command and its input come back from a crontab, or are told not to fit one', () => {
  const random = seededRandom(11);
  let kept = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const command = `run${aText(random)}x`;
    const data = {
      command: random.below(3) === 0 ? command.slice(0, -1).replace(/[ \t]+$/, '') : command,
      ...(random.below(2) === 0 ? {} : { stdin: aText(random, [...PIECES, '\n']) }),
      env: {},
    };
    const back = thereAndBack(data);
    if (back === undefined) continue;
    kept++;
    expect(back).toEqual(data);
  }
  expect(kept).toBeGreaterThan(ROUNDS / 2);
});

test('whatever stands in a line is exported as it was read', () => {
  const random = seededRandom(12);
  for (let i = 0; i < ROUNDS; i++) {
    const [read] = importCrontab(`0 5 * * * run${aText(random)}${aText(random)}\n`);
    if (read?.kind !== 'schedule') throw new Error(read?.reason);
    expect(thereAndBack(read.template.data as object)).toEqual(read.template.data);
  }
});

test('a variable comes back from a crontab, or is told not to fit one', () => {
  const random = seededRandom(13);
  let kept = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const name = random.below(3) > 0 ? 'A' : aText(random);
    const data = { command: 'run', env: { [name]: random.below(9) === 0 ? '' : aText(random) } };
    const back = thereAndBack(data);
    if (back === undefined) continue;
    kept++;
    expect(back).toEqual(data);
  }
  expect(kept).toBeGreaterThan(ROUNDS / 2);
});
