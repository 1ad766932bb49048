/** The same with drizzle-orm: `outbox.row` checks the job, and the ORM inserts it in its own transaction. */
import { Outbox } from 'carillon';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { Pool } from 'pg';

const orders = pgTable('shop_orders', { id: text('id').primaryKey() });
/** The columns that an application writes; the others have defaults. */
const carillonOutbox = pgTable('carillon_outbox', {
  id: text('id').notNull(),
  queue: text('queue').notNull(),
  name: text('name').notNull(),
  data: text('data').notNull(),
  opts: text('opts').notNull(),
});

const outbox = new Outbox();
const pool = new Pool({ connectionString: process.env.DATABASE_URL });
const db = drizzle(pool);
await db.execute(sql`CREATE TABLE IF NOT EXISTS shop_orders (id text PRIMARY KEY)`);

async function placeOrder(id: string): Promise<void> {
  await db.transaction(async (tx) => {
    await tx
      .insert(carillonOutbox)
      .values(outbox.row('emails', 'confirm', { order: id }, { jobId: `confirm-${id}` }));
    await tx.insert(orders).values({ id });
  });
}

await placeOrder('drizzle-1');
await placeOrder('drizzle-1').catch(() => process.stdout.write('refused: the order is there already\n'));
await pool.end();
