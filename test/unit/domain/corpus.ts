import { readFileSync } from 'node:fs';
import type { TimingDefinition } from '../../../src/domain/fire-times-definition.js';
import { nextFireTimes } from '../../../src/domain/next-fire-times.js';

const DATA = new URL('../../data/', import.meta.url);

export function readData(path: string): string {
  return readFileSync(new URL(path, DATA), 'utf8');
}

/** The rows of a CSV file with CRLF line ends, quotes and a header. */
export function readCsv(path: string): Record<string, string>[] {
  const [header = [], ...rows] = parseCsv(readData(path));
  return rows.map((row) => Object.fromEntries(header.map((name, i) => [name, row[i] ?? ''])));
}

function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    if (match[0] === '' && row.length === 0) break;
    row.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] !== ',') {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

export interface CorpusQuestion {
  id: string;
  definition: TimingDefinition;
  after: string;
  expected: string[];
}

export const LITERAL = { gap: 'skip', fold: 'both' } as const;

/** Every answered row of the corpus: expected.csv, and dst-cases.csv under its three policies. */
export function corpusQuestions(): CorpusQuestion[] {
  const plain = readCsv('corpus/expected.csv').map(
    (row): CorpusQuestion => ({
      id: `${row.id}`,
      definition: { cron: row.expr, tz: row.tz },
      after: `${row.start}`,
      expected: [1, 2, 3, 4, 5].map((i) => row[`next${i}`] ?? '').filter((time) => time !== ''),
    }),
  );
  const policies = { expected: {}, edge: { gap: 'edge' }, literal: LITERAL } as const;
  const changes = readCsv('corpus/dst-cases.csv').flatMap((row) =>
    Object.entries(policies).map(
      ([column, policy]): CorpusQuestion => ({
        id: `${row.id} ${column}`,
        definition: { cron: row.expr, tz: row.tz, ...policy },
        after: `${row.start}`,
        expected: `${row[column]}`.split(' '),
      }),
    ),
  );
  return [...plain, ...changes];
}

interface CronCase {
  entry: string;
  case: string;
  expr: string;
  tz: string;
  after: string;
  expected: string[];
  literal: string[];
  edge: string[];
  shift: string[];
}

export function cronCases(): CronCase[] {
  return JSON.parse(readData('cron-cases.json')) as CronCase[];
}

/** Times as the corpus writes them. */
export function fireTexts(definition: TimingDefinition, after: string, count: number): string[] {
  return nextFireTimes(definition, { after, count }).map((time) => time.toISOString().replace('.000Z', 'Z'));
}
