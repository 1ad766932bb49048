import type { Command } from 'commander';
import { CarillonError } from '../domain/errors.js';
import { durationArgument, integerArgument } from './arguments.js';
import { placeOf } from './connect.js';
import { usageError } from './failure.js';
import { plain, printJson, printLine, printTable, remark } from './output.js';
import { settingsOf } from './settings.js';
import { untilSignal } from './signals.js';

const HELP = `
Jobs that an application added to its PostgreSQL in a transaction exist exactly if it commits. This command hands them
to Redis until it is told to stop; run as many as you like.

Examples:
  carillon outbox migrate --database postgres://app@db/app
  carillon outbox --database postgres://app@db/app
  carillon outbox list                                   rows that were set aside, and why
  carillon outbox retry 01J9ZC3V7Q                       after mending what was wrong
The database may also stand in CARILLON_DATABASE_URL or DATABASE_URL.`;

interface Flags {
  database?: string;
  table?: string;
  batch?: string;
  pollInterval?: string;
  duplicateWindow?: string;
  replicas?: string;
  timeout?: string;
}

/** \`carillon outbox\` and what belongs to its table. */
export function addOutbox(program: Command): void {
  const outbox = program
    .command('outbox')
    .description('hand jobs from a table of PostgreSQL to Redis, until it is told to stop')
    .option('--database <url>', 'where PostgreSQL is')
    .option('--table <name>', 'the table (default: carillon_outbox)')
    .option('--batch <count>', 'rows a transaction (default: 200)')
    .option('--poll-interval <duration>', 'the longest rest between two looks (default: 1s)')
    .option('--duplicate-window <duration>', 'how long an ended id answers `fired` (default: 1h)')
    .option(
      '--replicas <count>',
      'replicas of Redis that must have a job before its row is deleted (default: 0)',
    )
    .option('--timeout <duration>', 'how long they may take, at most 5s (default: 1s)')
    .addHelpText('after', HELP)
    .action(relay);
  outbox.command('sql').description('print the statements that make the table').action(sql);
  outbox.command('migrate').description('make the table, where it is not there').action(migrate);
  outbox.command('list').description('rows that were set aside, oldest first').action(list);
  outbox.command('retry <id>').description('let a row that was set aside be tried again').action(retry);
  outbox.command('discard <id>').description('delete a row that was set aside').action(discard);
}

async function relay(_flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { redis, prefix, namespace } = settings;
  const { batch, pollInterval, duplicateWindow, replicas, timeout } = flagsOf(command);
  if (timeout !== undefined && replicas === undefined) throw usageError('--timeout is that of --replicas');
  const { OutboxRelay } = await import('../outbox/relay.js');
  const service = new OutboxRelay({
    database: databaseOf(command),
    redis,
    prefix,
    namespace,
    table: await tableOf(command),
    ...(batch && { batch: integerArgument(batch, 'batch', 1, 1000) }),
    ...(pollInterval && { pollInterval: durationArgument(pollInterval, 'poll-interval') }),
    ...(duplicateWindow && { duplicateWindow: durationArgument(duplicateWindow, 'duplicate-window') }),
    ...(replicas && {
      durability: {
        replicas: integerArgument(replicas, 'replicas', 0, 100),
        ...(timeout && { timeout: durationArgument(timeout, 'timeout') }),
      },
    }),
  });
  const stopping = untilSignal();
  const started = service.start();
  await Promise.race([started, stopping.asked]);
  if (!stopping.wasAsked) {
    if (!settings.json)
      printLine(`outbox of ${namespace} serves ${placeOf(redis)}; SIGTERM or Ctrl-C stops it`);
    await stopping.asked;
  }
  started.catch(() => undefined);
  await service.stop();
  stopping.done();
  const { sent, repeated, setAside } = service.report();
  if (settings.json) return printJson({ namespace, sent, repeated, setAside });
  printLine(`stopped; handed over ${sent} jobs, ${repeated} of them again, set ${setAside} rows aside`);
}

async function sql(_flags: unknown, command: Command): Promise<void> {
  const { outboxSql } = await import('../outbox/table.js');
  process.stdout.write(outboxSql(await tableOf(command)));
}

async function migrate(_flags: unknown, command: Command): Promise<void> {
  const { outboxSql } = await import('../outbox/table.js');
  const table = await tableOf(command);
  await query(command, outboxSql(table));
  if (settingsOf(command).json) return printJson({ table });
  printLine(`the table ${table} is there`);
}

async function list(_flags: unknown, command: Command): Promise<void> {
  const table = await tableOf(command);
  const rows = await query(
    command,
    `SELECT id, queue, name, reason, tries, set_aside_at AS "setAsideAt" FROM ${table} WHERE set_aside_at IS NOT NULL ORDER BY seq LIMIT 1000`,
  );
  if (settingsOf(command).json) return printJson({ table, rows });
  await printTable(
    ['id', 'queue', 'name', 'since', 'why'],
    rows.map((row) =>
      [row.id, row.queue, row.name, (row.setAsideAt as Date).toISOString(), row.reason].map(String),
    ),
  );
  if (rows.length === 0) remark('no row is set aside');
}

async function retry(id: string, _flags: unknown, command: Command): Promise<void> {
  const table = await tableOf(command);
  await changeOne(
    command,
    id,
    `UPDATE ${table} SET set_aside_at = NULL, retry_at = NULL, tries = 0, reason = NULL WHERE id = $1 AND set_aside_at IS NOT NULL RETURNING id`,
  );
  if (!settingsOf(command).json) printLine(`${plain(id)} is tried again`);
}

async function discard(id: string, _flags: unknown, command: Command): Promise<void> {
  const table = await tableOf(command);
  await changeOne(
    command,
    id,
    `DELETE FROM ${table} WHERE id = $1 AND set_aside_at IS NOT NULL RETURNING id`,
  );
  if (!settingsOf(command).json) printLine(`${plain(id)} is deleted`);
}

async function changeOne(command: Command, id: string, statement: string): Promise<void> {
  const rows = await query(command, statement, [id]);
  if (rows.length === 0) {
    throw new CarillonError('NOT_FOUND', 'no row of this id is set aside', {
      field: 'id',
      given: id,
      todo: '`carillon outbox list` shows which are.',
    });
  }
  if (settingsOf(command).json) printJson({ id });
}

async function query(command: Command, text: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const database = databaseOf(command);
  const { PostgresSession } = await import('../outbox/postgres-session.js');
  const session = await PostgresSession.open(database);
  // Without values it may be several statements.
  return session.query(text, values).finally(() => session.close());
}

function databaseOf(command: Command): string {
  const { database } = flagsOf(command);
  const found = database || process.env.CARILLON_DATABASE_URL || process.env.DATABASE_URL;
  if (found) return found;
  throw new CarillonError('INVALID_OPTION', 'it is not known where PostgreSQL is', {
    field: 'database',
    todo: 'Give --database postgres://user:password@host/database, or set CARILLON_DATABASE_URL.',
  });
}

async function tableOf(command: Command): Promise<string> {
  const { checkTable, OUTBOX_TABLE } = await import('../outbox/table.js');
  return checkTable(flagsOf(command).table ?? OUTBOX_TABLE);
}

function flagsOf(command: Command): Flags {
  return command.optsWithGlobals() as Flags;
}
