import type { Run } from 'carillon';

export interface Backfill {
  /** Rows to walk over, from 1. */
  rows: number;
  /** ms that a page takes: the work itself. */
  pageTakes: number;
}

interface Reached {
  /** The last row that is done. */
  row: number;
}

const PAGE = 100;

/**
 * Six hours of work in one run. It is done in pages; after each the run keeps how far it has come. Whatever ends an attempt (a
 * deployment, a crash, a pause), the next goes on behind the last page that was kept.
 */
export async function backfill(run: Run<Backfill>): Promise<Reached> {
  const { rows, pageTakes } = run.data;
  let { row } = run.lastCheckpoint<Reached>() ?? { row: 0 };
  console.log(`attempt ${run.attempt} goes on behind row ${row}`);
  while (row < rows) {
    // Between two pages nothing is half done: here the run stops when it is told to.
    run.signal.throwIfAborted();
    const last = Math.min(row + PAGE, rows);
    await walk(run, row + 1, last, pageTakes);
    row = last;
    await run.checkpoint({ row });
    console.log(`done up to row ${row}`);
  }
  return { row };
}

/**
 * One page. A worker that dies behind it and before the checkpoint leaves it to be done again: `once` under the page's own key
 * then finds it done. What a page does elsewhere must bear a repeat, as an UPSERT does.
 */
async function walk(run: Run<Backfill>, first: number, last: number, takes: number): Promise<void> {
  await run.once(`${run.idempotencyKey}:${first}`, async (effect) => {
    await new Promise((resolve) => setTimeout(resolve, takes));
    effect.command('incrby', `backfilled:${run.jobId}`, last - first + 1);
  });
}
