import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { outboxSql } from '../../src/outbox/table.js';
import { onCleanup } from './cleanup.js';
import { type NodeProcess, spawnNode } from './node-process.js';
import type { PostgresServer } from './postgres-server.js';
import type { Spine } from './spine.js';

const CLI = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** A connection that closes with the test. */
export async function postgresClient(server: PostgresServer): Promise<Client> {
  const client = new Client({ connectionString: server.url });
  client.on('error', () => undefined);
  await client.connect();
  onCleanup('client of postgres', () => client.end().catch(() => undefined));
  return client;
}

/** An empty outbox. */
export async function emptyOutbox(client: Client): Promise<void> {
  await client.query('DROP TABLE IF EXISTS carillon_outbox');
  await client.query(outboxSql());
}

/** `carillon outbox` in a process of its own. */
export async function startRelay(spine: Spine, database: string): Promise<NodeProcess> {
  const { url, namespace, prefix } = spine;
  const flags = ['--database', database, '--redis', url, '--namespace', namespace, '--prefix', prefix];
  const relay = spawnNode(CLI, ['outbox', ...flags, '--json'], { CARILLON_LOG_LEVEL: 'silent' });
  return relay;
}

/** Runs the command line to its end. */
export async function carillon(
  ...args: string[]
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawnNode(CLI, args);
  const { code } = await child.exited;
  return { code, out: child.lines.join('\n'), err: child.stderr };
}
