/** An application: each transaction writes an order and its job; every third is rolled back. Prints what committed. */
import { Client } from 'pg';
import { Outbox } from '../../src/outbox/outbox.js';

const { database, stem, count } = JSON.parse(process.argv[2] ?? '{}') as {
  database: string;
  stem: string;
  count: number;
};
const client = new Client({ connectionString: database });
await client.connect();
const outbox = new Outbox();
process.stdout.write('adding\n');
for (let i = 0; i < count; i++) {
  const id = `${stem}-${i}`;
  await client.query('BEGIN');
  await client.query('INSERT INTO orders (id) VALUES ($1)', [id]);
  await outbox.add(client, 'orders', 'confirm', { id }, { jobId: id, delay: (i % 4) * 200 });
  await client.query(i % 3 === 2 ? 'ROLLBACK' : 'COMMIT');
}
await client.end();
process.stdout.write('added\n');
