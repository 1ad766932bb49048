/**
 * An order and its job in one transaction of node-postgres: the job exists exactly if the transaction commits.
 *
 *   carillon outbox migrate --database "$DATABASE_URL"
 *   carillon outbox --database "$DATABASE_URL" &
 *   DATABASE_URL=postgres://app@localhost/app npx tsx examples/outbox/node-postgres.ts
 */
import { Outbox } from 'carillon';
import { Client } from 'pg';

const outbox = new Outbox();
const client = new Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
await client.query('CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY)');

/** Throws what the database throws; nothing of it is there then, the job neither. */
async function placeOrder(id: string): Promise<void> {
  await client.query('BEGIN');
  try {
    await outbox.add(client, 'emails', 'confirm', { order: id }, { jobId: `confirm-${id}`, attempts: 5 });
    await client.query('INSERT INTO shop_orders (id) VALUES ($1)', [id]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

await placeOrder('pg-1');
// The order is there already: its second transaction rolls back, and takes its job with it.
await placeOrder('pg-1').catch((error: Error) => process.stdout.write(`refused: ${error.message}\n`));
await client.end();
