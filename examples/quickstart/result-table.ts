import Table from 'cli-table3';
import { percentile } from '../../src/bench/figures.js';
import type { Group } from './tally.js';

/** What was expected of each group and what came of it. */
export function resultTable(groups: readonly Group[]): string {
  const table = new Table({
    head: ['', 'expected', 'run', 'lost', 'doubled', 'early', 'lag p50', 'p99', 'max'],
    colAligns: ['left', ...Array<'right'>(8).fill('right')],
    style: { head: [], border: [], compact: true },
  });
  for (const { name, expected, run, lost, doubled, early, lags } of groups) {
    const counts = [expected, run, lost, doubled, early].map((count) => count.toLocaleString('en'));
    const times = [percentile(lags, 0.5), percentile(lags, 0.99), percentile(lags, 1)];
    table.push([name, ...counts, ...times.map((ms) => (Number.isNaN(ms) ? '-' : `${Math.round(ms)} ms`))]);
  }
  return table.toString();
}
