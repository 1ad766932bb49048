/**
 * Fire times side by side with cron-parser: the next time of every distinct expression and zone of the corpus, asked
 * in turns, and two million definitions compiled and asked once. Run: npx tsx test/bench/fire-times.ts
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CronExpressionParser } from 'cron-parser';
import { compileSchedule } from '../../src/domain/fire-times.js';

const STEPS = 10;
const START = Date.UTC(2026, 5, 15, 10, 7);

interface Pair {
  cron: string;
  tz: string;
}

function corpusPairs(): Pair[] {
  const text = readFileSync(new URL('../data/corpus/expected.csv', import.meta.url), 'utf8');
  const rows = text.split('\r\n').slice(1);
  const pairs = new Map<string, Pair>();
  for (const row of rows) {
    const [, quoted, plain, tz] = /^[^,]*,(?:"([^"]*)"|([^,]*)),\d,([^,]*),/.exec(row) ?? [];
    const cron = quoted ?? plain;
    if (cron !== undefined && tz !== undefined && tz !== 'UTC') pairs.set(`${cron} ${tz}`, { cron, tz });
  }
  return [...pairs.values()];
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Calls a second of `next` over all pairs, `STEPS` times each. */
function rate(pairs: readonly Pair[], nextOf: (pair: Pair) => () => unknown): number {
  const started = performance.now();
  for (const pair of pairs) {
    const next = nextOf(pair);
    for (let i = 0; i < STEPS; i++) next();
  }
  return (pairs.length * STEPS) / ((performance.now() - started) / 1000);
}

function ours({ cron, tz }: Pair): () => unknown {
  const timing = compileSchedule({ cron, tz });
  let at: number | undefined = START;
  return () => {
    at = timing.next(at ?? START);
    return at;
  };
}

function cronParser({ cron, tz }: Pair): () => unknown {
  const iterator = CronExpressionParser.parse(cron, { tz, currentDate: new Date(START) });
  return () => iterator.next();
}

/** Parse and ask once, as whoever keeps no iterator does. */
function cronParserAfresh({ cron, tz }: Pair): () => unknown {
  return () => CronExpressionParser.parse(cron, { tz, currentDate: new Date(START) }).next();
}

/** CPU seconds to compile `count` definitions over 200 distinct expressions and zones and ask each once. */
export function manyDefinitions(count: number): number {
  const pairs = corpusPairs().slice(0, 200);
  const started = process.cpuUsage();
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const { cron, tz } = pairs[i % pairs.length] as Pair;
    sum += compileSchedule({ cron, tz }, { seed: `queue:${i}` }).next(START + i) ?? 0;
  }
  if (!(sum > 0)) throw new Error('nothing was computed');
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000_000;
}

/** Medians of interleaved rounds, in calls a second. */
export function sideBySide(rounds: number) {
  const pairs = corpusPairs();
  const measured = Array.from({ length: rounds }, () => ({
    ours: rate(pairs, ours),
    cronParser: rate(pairs, cronParser),
    cronParserAfresh: rate(pairs, cronParserAfresh),
  }));
  return {
    pairs: pairs.length,
    rounds,
    carillon: { nextPerSecond: Math.round(median(measured.map((round) => round.ours))) },
    cronParser: {
      nextPerSecond: Math.round(median(measured.map((round) => round.cronParser))),
      parseAndNextPerSecond: Math.round(median(measured.map((round) => round.cronParserAfresh))),
    },
    ratio: Math.round(
      median(measured.map((round) => round.ours / Math.max(round.cronParser, round.cronParserAfresh))),
    ),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const result = {
    name: 'fire-times',
    ...sideBySide(7),
    twoMillionDefinitionsCpuSeconds: manyDefinitions(2_000_000),
  };
  console.log(JSON.stringify(result));
}
