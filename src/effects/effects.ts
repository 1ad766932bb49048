import { checkCall } from '../config/call-options.js';
import { checkObject, refuse } from '../config/check.js';

/** What a helper needs of a run; a run of Carillon's Worker has both. */
export interface RunIdentity {
  /** The same for every attempt of one run, and for no other run. */
  idempotencyKey: string;
  /** Rises with every attempt, as a string of digits. */
  fencingToken: string;
}

/** Whatever runs a statement in the caller's transaction: a client of node-postgres, say. */
export interface EffectTransaction {
  query(text: string, values: unknown[]): Promise<{ rowCount: number | null }>;
}

const EFFECTS_TABLE = 'carillon_effects';
const NAME = /^([a-z_][a-z0-9_]{0,47}\.)?[a-z_][a-z0-9_]{0,47}$/;

/** The table of {@link claimEffect}; may be run again. */
export function effectsSql(table: string = EFFECTS_TABLE): string {
  return `CREATE TABLE IF NOT EXISTS ${checkIdentifier('table', table)} (
  key text PRIMARY KEY,
  done_at timestamptz NOT NULL DEFAULT now()
);
`;
}

/**
 * Claims an effect by its unique key, in the transaction that has the effect: they commit together or not at all.
 * A second attempt at the same time waits for the first one's end.
 * @param options.part tells several effects of one run apart.
 * @returns false when an earlier attempt committed it already: leave it out.
 */
export async function claimEffect(
  transaction: EffectTransaction,
  run: Pick<RunIdentity, 'idempotencyKey'>,
  options: { part?: string; table?: string } = {},
): Promise<boolean> {
  checkCall(options, ['part', 'table']);
  const { part = '', table = EFFECTS_TABLE } = options;
  const { rowCount } = await transaction.query(
    `INSERT INTO ${checkIdentifier('table', table)} (key) VALUES ($1) ON CONFLICT DO NOTHING`,
    [keyOf(run, part)],
  );
  return rowCount === 1;
}

/** A statement `UPDATE … WHERE` that a later attempt's write shuts out an earlier one's from. */
export interface FencedUpdate {
  table: string;
  /** Columns and their new values. */
  set: Readonly<Record<string, unknown>>;
  /** Columns and the values that pick the row. */
  where: Readonly<Record<string, unknown>>;
  /** The column that holds the highest token seen, a bigint. Defaults to `fence`. */
  fence?: string;
}

/**
 * Updates a row unless a later attempt wrote it: a worker that was frozen past its lock changes nothing when it wakes.
 * @returns false when the row is not there, or belongs to a later attempt: stop.
 * @throws CarillonError INVALID_OPTION for a name that would need quotes.
 */
export async function updateFenced(
  transaction: EffectTransaction,
  run: Pick<RunIdentity, 'fencingToken'>,
  update: FencedUpdate,
): Promise<boolean> {
  checkCall(update, ['table', 'set', 'where', 'fence'], [], 'update');
  const { table, set, where, fence = 'fence' } = update;
  checkObject('set', set);
  checkObject('where', where);
  const values: unknown[] = [run.fencingToken];
  const place = (column: string, value: unknown) => {
    values.push(value);
    return `${checkIdentifier('column', column)} = $${values.length}`;
  };
  const column = checkIdentifier('fence', fence);
  const changes = Object.entries(set).map(([name, value]) => place(name, value));
  const picks = Object.entries(where).map(([name, value]) => place(name, value));
  if (picks.length === 0) refuse('where', where, 'picks every row', 'Name the columns that pick one.');
  const { rowCount } = await transaction.query(
    `UPDATE ${checkIdentifier('table', table)} SET ${[`${column} = $1::bigint`, ...changes].join(', ')}
     WHERE ${[...picks, `(${column} IS NULL OR ${column} <= $1::bigint)`].join(' AND ')}`,
    values,
  );
  return (rowCount ?? 0) > 0;
}

/**
 * The headers of a request that a server takes once: those that know the Idempotency-Key header answer a repeat as they
 * answered the first. `Fencing-Token` is for servers of your own, which compare it.
 * @param part tells several requests of one run apart.
 */
export function effectHeaders(run: RunIdentity, part = ''): Record<string, string> {
  // The draft of the header has a quoted text; servers in use take the text as it is.
  return { 'Idempotency-Key': encodeURIComponent(keyOf(run, part)), 'Fencing-Token': run.fencingToken };
}

function keyOf({ idempotencyKey }: Pick<RunIdentity, 'idempotencyKey'>, part: string): string {
  if (typeof part !== 'string') refuse('part', part, 'must be a text', 'Give the name of the effect.');
  return part === '' ? idempotencyKey : `${idempotencyKey}#${part}`;
}

/** Names become part of the statement: only such as need no quotes. @throws CarillonError INVALID_OPTION */
function checkIdentifier(field: string, value: string): string {
  if (NAME.test(value)) return value;
  return refuse(field, value, 'is no name', 'Give lower-case letters, digits and _.');
}
