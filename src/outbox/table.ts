import { refuse } from '../config/check.js';

/** Where rows wait for a relay, unless it is named otherwise. */
export const OUTBOX_TABLE = 'carillon_outbox';

/** A table's name, or `schema.table`: letters, digits and _, in lower case, so that no name needs quotes. */
const NAME = /^([a-z_][a-z0-9_]{0,47}\.)?[a-z_][a-z0-9_]{0,47}$/;

/** What PostgreSQL allows a channel of NOTIFY; bytes. */
const LONGEST_CHANNEL = 63;

/** @throws CarillonError INVALID_OPTION */
export function checkTable(value: unknown): string {
  if (typeof value === 'string' && NAME.test(value)) {
    if (value.length <= LONGEST_CHANNEL) return value;
    refuse(
      'table',
      value,
      `is longer than the ${LONGEST_CHANNEL} bytes of a channel of NOTIFY`,
      'Give schema and table shorter names.',
    );
  }
  return refuse(
    'table',
    value,
    'is no table name',
    'Give lower-case letters, digits and _, with a schema if need be: app.carillon_outbox.',
  );
}

/** The channel of NOTIFY: all relays of a table listen there. */
export function channelOf(table: string): string {
  return table.replace('.', '_');
}

/**
 * The statements that make the table; they may be run again. `data` and `opts` are JSON as text: jsonb would rewrite
 * numbers. The trigger lets every way of inserting, an ORM's too, wake the relays when the transaction commits.
 */
export function outboxSql(table: string = OUTBOX_TABLE): string {
  checkTable(table);
  const channel = channelOf(table);
  return `CREATE TABLE IF NOT EXISTS ${table} (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  queue text NOT NULL,
  name text NOT NULL,
  data text NOT NULL,
  opts text NOT NULL DEFAULT '{}',
  added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tries integer NOT NULL DEFAULT 0,
  retry_at timestamptz,
  set_aside_at timestamptz,
  reason text
);
CREATE INDEX IF NOT EXISTS ${channel}_ready ON ${table} (seq) WHERE set_aside_at IS NULL;
CREATE OR REPLACE FUNCTION ${table}_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('${channel}', '');
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER ${channel}_wake AFTER INSERT ON ${table}
  FOR EACH STATEMENT EXECUTE FUNCTION ${table}_wake();
`;
}
