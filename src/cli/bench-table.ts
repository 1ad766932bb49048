import { arch, cpus, release, type } from 'node:os';
import Table from 'cli-table3';
import { type BenchResult, type OwnResult, SIDES } from '../bench/figures.js';

/**
 * What a bench found, for people.
 * @param says what it measures.
 * @param redis the server's version.
 */
export function benchTable(result: BenchResult | OwnResult, says: string, redis: string): string {
  return [
    isComparison(result) ? comparisonTable(result, says) : ownTable(result, says),
    `${result.jobs} jobs, ${isComparison(result) ? 'medians' : 'the worst'} of ${result.rounds} rounds${isComparison(result) ? ' in turns' : ''}; ` +
      `Redis ${redis}, AOF everysec; Node ${process.version}, ` +
      `${cpus().length} cores, ${type()} ${release()} ${arch()}`,
  ].join('\n');
}

function isComparison(result: BenchResult | OwnResult): result is BenchResult {
  return 'carillon' in result;
}

function comparisonTable(result: BenchResult, says: string): string {
  const figures = [...new Set(SIDES.flatMap((side) => Object.keys(result[side])))];
  const table = new Table({
    head: [`${result.name}: ${says}`, 'Carillon', 'BullMQ', 'Carillon / BullMQ'],
    colAligns: ['left', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const figure of figures) {
    const [ours, theirs] = [result.carillon[figure], result.bullmq[figure]];
    const ratio = ours === undefined || theirs === undefined ? '' : (ours / theirs).toPrecision(3);
    table.push([figure, ours ?? '', theirs ?? '', ratio]);
  }
  return table.toString();
}

function ownTable({ name, jobs: _, rounds: __, ...figures }: OwnResult, says: string): string {
  const table = new Table({
    head: [`${name}: ${says}`, 'Carillon'],
    colAligns: ['left', 'right'],
    style: { head: [], border: [] },
  });
  for (const [figure, value] of Object.entries(figures)) {
    if (typeof value !== 'object') table.push([figure, value]);
    else for (const [part, number] of Object.entries(value)) table.push([`${figure} ${part}`, number]);
  }
  return table.toString();
}
