import type { LeaderScripts, OwnedRange } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';
import type { DispatchReport } from './dispatch-report.js';

/** Records looked at in one round, ms between rounds: a million records take about six hours, and nobody feels it. */
const PAGE = 100;
const REST = 2000;

/** Holds records against their indexes, a page at a time through all owned buckets, for ever; repairs and counts. */
export class IndexSweeper extends RepeatedTask {
  #bucket = 0;
  #cursor = '0';

  constructor(
    private readonly scripts: LeaderScripts,
    private readonly owned: () => OwnedRange[],
    private readonly report: DispatchReport,
    private readonly log: Logger,
  ) {
    super('index sweeper', REST, log);
  }

  protected override async work(): Promise<void> {
    const owned = this.owned();
    if (owned.length === 0) return;
    const isOwned = () => owned.some((range) => this.#bucket >= range.first && this.#bucket <= range.last);
    // Others sweep theirs: no round is spent on them.
    while (!isOwned()) this.#advance();
    const { cursor, repaired } = await this.scripts.sweepBucket(owned, this.#bucket, this.#cursor, PAGE);
    this.#cursor = cursor;
    if (repaired.length > 0) {
      this.report.repaired(repaired.length);
      this.log.error({ bucket: this.#bucket, jobs: repaired.slice(0, 10) }, 'repaired indexes of records');
    }
    if (cursor === '0') this.#advance();
  }

  #advance(): void {
    this.#bucket = (this.#bucket + 1) % 256;
    this.#cursor = '0';
  }
}
