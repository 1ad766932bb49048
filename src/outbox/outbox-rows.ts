import type { PostgresSession } from './postgres-session.js';
import type { StoredRow } from './relay-row.js';

/** A relay that freezes with rows in its hands loses them, and so its transaction, after this; ms. */
const HELD = 20_000;
/** The rest before a row's next try doubles from here to there; seconds. */
const FIRST_REST = 0.2;
const LONGEST_REST = 60;

/** A row that is left for later, or set aside, and why. */
export interface FailedRow {
  row: StoredRow;
  reason: string;
}

/** The statements of one relay. All run in a transaction that `take` begins and `commit` ends. */
export class OutboxRows {
  constructor(
    private readonly session: PostgresSession,
    private readonly table: string,
  ) {}

  /** The oldest rows that nobody else has in hand. */
  async take(limit: number): Promise<StoredRow[]> {
    await this.session.query('BEGIN');
    await this.session.query(`SET LOCAL idle_in_transaction_session_timeout = ${HELD}`);
    const rows = await this.session.query(
      `SELECT seq, id, queue, name, data, opts, tries, extract(epoch FROM added_at) * 1000 AS added
       FROM ${this.table}
       WHERE set_aside_at IS NULL AND (retry_at IS NULL OR retry_at <= now())
       ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED`,
      [limit],
    );
    return rows.map(({ added, ...row }) => {
      return { ...(row as unknown as StoredRow), addedAt: Math.floor(Number(added)) };
    });
  }

  async remove(rows: readonly StoredRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.session.query(`DELETE FROM ${this.table} WHERE seq = ANY($1::bigint[])`, [
      rows.map((row) => row.seq),
    ]);
  }

  async leaveForLater({ row, reason }: FailedRow): Promise<void> {
    const rest = Math.min(LONGEST_REST, FIRST_REST * 2 ** Math.min(row.tries, 20));
    await this.session.query(
      `UPDATE ${this.table} SET tries = tries + 1, reason = $2, retry_at = now() + $3 * interval '1 second' WHERE seq = $1`,
      [row.seq, reason, rest],
    );
  }

  async setAside({ row, reason }: FailedRow): Promise<void> {
    await this.session.query(
      `UPDATE ${this.table} SET tries = tries + 1, reason = $2, set_aside_at = now() WHERE seq = $1`,
      [row.seq, reason],
    );
  }

  async commit(): Promise<void> {
    await this.session.query('COMMIT');
  }
}
