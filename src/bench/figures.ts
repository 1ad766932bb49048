/** Named numbers of one side. */
export type Figures = Record<string, number>;

export const SIDES = ['carillon', 'bullmq'] as const;
export type Side = (typeof SIDES)[number];

/** What a bench prints as its last line. */
export interface BenchResult {
  name: string;
  jobs: number;
  rounds: number;
  carillon: Figures;
  bullmq: Figures;
  /** carillon / bullmq of the main figure; null where BullMQ has no such figure. */
  ratio: number | null;
}

/** What a bench prints that BullMQ has no side in: figures of its own by group, each the worst of all rounds. */
export interface OwnResult {
  name: string;
  jobs: number;
  rounds: number;
  [figure: string]: string | number | Figures;
}

/**
 * Measures both sides in turn, the first one changing from round to round, so that a machine that gets slower or
 * faster does so for both.
 * @returns the median of each figure, and of the rounds' ratios carillon / bullmq of the main one: the two sides of a
 *   round met the same machine.
 */
export async function interleaved(
  rounds: number,
  main: string,
  measure: (side: Side, round: number) => Promise<Figures>,
): Promise<Record<Side, Figures> & { ratio: number }> {
  const measured: Record<Side, Figures[]> = { carillon: [], bullmq: [] };
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? SIDES : [...SIDES].reverse();
    for (const side of order) {
      const figures = await measure(side, round);
      measured[side].push(figures);
      say(`round ${round + 1} of ${rounds}, ${side}: ${JSON.stringify(rounded(figures))}`);
    }
  }
  const ratios = measured.carillon.map(
    (figures, round) => (figures[main] ?? NaN) / (measured.bullmq[round]?.[main] ?? NaN),
  );
  return {
    carillon: medians(measured.carillon),
    bullmq: medians(measured.bullmq),
    ratio: roundFigure(median(ratios)),
  };
}

/** The median of each figure over the rounds. */
export function medians(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {});
  return rounded(
    Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name] ?? NaN))])),
  );
}

/** The greatest of each figure over the rounds: what a promise is held against. */
export function worst(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {});
  return rounded(
    Object.fromEntries(names.map((name) => [name, Math.max(...rounds.map((round) => round[name] ?? NaN))])),
  );
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value below which a share of the values lies; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** A digit more than a noisy machine can say, so that ratios can be held against what they are made of. */
export function roundFigure(value: number): number {
  return Number(value.toPrecision(4));
}

function rounded(figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, roundFigure(value)]));
}

/** Progress, for people: never on standard output, whose last line is the result. */
export function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}
