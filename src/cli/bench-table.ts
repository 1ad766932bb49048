import { arch, cpus, release, type } from 'node:os';
import Table from 'cli-table3';
import { type BenchResult, SIDES } from '../bench/figures.js';

/**
 * What a bench found, for people.
 * @param says what it measures.
 * @param redis the server's version.
 */
export function benchTable(result: BenchResult, says: string, redis: string): string {
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
  return [
    table.toString(),
    `${result.jobs} jobs, medians of ${result.rounds} rounds in turns; Redis ${redis}, AOF everysec; Node ${process.version}, ` +
      `${cpus().length} cores, ${type()} ${release()} ${arch()}`,
  ].join('\n');
}
