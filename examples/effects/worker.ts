/**
 * A worker whose effects in third systems are there once, however often it is killed:
 *
 *   DATABASE_URL=postgres://app@localhost/app REDIS_URL=redis://localhost:6379 npx tsx examples/effects/worker.ts
 */
import { claimEffect, effectHeaders, effectsSql, updateFenced, Worker } from 'carillon';
import { Pool } from 'pg';

const pool = new Pool({
  connectionString: process.env.DATABASE_URL,
  // A frozen worker in the middle of a transaction would hold up the attempt that follows it.
  idle_in_transaction_session_timeout: 2000,
});
// PostgreSQL ended such a connection: the next statement over it fails, and so does that attempt.
pool.on('connect', (client) => client.on('error', () => undefined));
pool.on('error', () => undefined);
await pool.query(effectsSql());
await pool.query(`CREATE TABLE IF NOT EXISTS entries (account text NOT NULL, cents bigint NOT NULL);
  CREATE TABLE IF NOT EXISTS reports (day text PRIMARY KEY, text text, fence bigint)`);

const worker = new Worker(
  'payments',
  {
    /** A unique key: the entry and the note that it is made commit together. */
    book: {
      effects: 'idempotent',
      handle: async (run) => {
        const { account, cents } = run.data as { account: string; cents: number };
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          if (await claimEffect(client, run)) {
            await client.query('INSERT INTO entries (account, cents) VALUES ($1, $2)', [account, cents]);
          }
          await client.query('COMMIT');
        } catch (error) {
          await client.query('ROLLBACK');
          throw error;
        } finally {
          client.release();
        }
      },
    },
    /** A fencing column: an attempt that woke up late changes nothing any more. */
    report: {
      effects: 'fenced',
      handle: async (run) => {
        const { day, text } = run.data as { day: string; text: string };
        await pool.query('INSERT INTO reports (day) VALUES ($1) ON CONFLICT DO NOTHING', [day]);
        return updateFenced(pool, run, { table: 'reports', set: { text }, where: { day } });
      },
    },
    /** A key of the business: two jobs for one invoice bill it once, and Redis counts it in the same step. */
    bill: {
      effects: 'idempotent',
      handle: (run) => {
        const { invoice, account, cents } = run.data as { invoice: string; account: string; cents: number };
        return run.once(`bill ${invoice}`, (effect) => {
          effect.command('incrby', `revenue:${account}`, cents);
          return { billed: invoice };
        });
      },
    },
    /** Another company's API: it answers a repeat as it answered the first. */
    charge: {
      effects: 'idempotent',
      handle: async (run) => {
        const { url, body } = run.data as { url: string; body: unknown };
        const headers = { 'content-type': 'application/json', ...effectHeaders(run) };
        const reply = await fetch(url, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
          signal: run.signal,
        });
        if (!reply.ok) throw new Error(`answered ${reply.status}`);
      },
    },
  },
  {
    connection: { url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' },
    ...JSON.parse(process.env.WORKER_OPTIONS ?? '{}'),
  },
);
worker.on('error', () => undefined);
await worker.waitUntilReady();
process.stdout.write('working\n');
process.once('SIGTERM', async () => {
  await worker.close();
  await pool.end();
});
