import type { RedisOptions } from 'ioredis';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { closeRedis, type OpenedRedis, openRedis, SCHEDULER_CONNECTION } from '../redis/connection.js';
import { JobScripts } from '../redis/job-scripts.js';
import { Shard } from '../redis/shard.js';
import type { SubmitItem, SubmitResult } from '../redis/submit-batch.js';
import { Submitter } from '../redis/submitter.js';
import { defaultLogger, type Logger } from '../support/logger.js';
import { pause } from '../support/pause.js';
import { Service } from '../support/service.js';
import { type FailedRow, OutboxRows } from './outbox-rows.js';
import { PostgresSession } from './postgres-session.js';
import { type OutboxRelayOptions, type ResolvedRelayOptions, resolveRelayOptions } from './relay-options.js';
import { itemOf, judge, type StoredRow } from './relay-row.js';
import { channelOf } from './table.js';

/** What a relay did since its start. */
export interface RelayReport {
  /** Jobs that were handed to Redis. */
  sent: number;
  /** Of these, the ones that were there already: a relay had died between the submit and the delete. */
  repeated: number;
  setAside: number;
  /** Whether the last round reached both servers. */
  ready: boolean;
  /** Why not. */
  trouble: string | undefined;
}

const FIRST_REST = 100;
const LONGEST_REST = 5000;
/** PostgreSQL's words for a table or a column that is not there. */
const MISSING = ['42P01', '42703'];

/**
 * Hands committed rows of an outbox to Redis, and deletes them. Any number may run at once: each takes rows that no
 * other has in hand. One that dies between the two repeats the submit under the same id, which adds nothing.
 */
export class OutboxRelay extends Service {
  readonly #options: ResolvedRelayOptions;
  readonly #logger: Logger;
  readonly #submitters = new Map<string, Submitter>();
  #opened: OpenedRedis | undefined;
  #scripts: JobScripts | undefined;
  #loop: Promise<void> = Promise.resolve();
  readonly #report: RelayReport = { sent: 0, repeated: 0, setAside: 0, ready: false, trouble: undefined };

  /** @throws CarillonError INVALID_OPTION, INVALID_DURATION; nothing is opened then. */
  constructor(options: OutboxRelayOptions) {
    super();
    this.#options = resolveRelayOptions(options);
    this.#logger = (options.logger ?? defaultLogger()).child({ outbox: this.#options.table });
  }

  report(): RelayReport {
    return { ...this.#report };
  }

  /** @throws CarillonError UNSUPPORTED without pg, NOT_FOUND without the table; a server that is away is waited for. */
  protected override async onStart(signal: AbortSignal): Promise<void> {
    const { redis, prefix, namespace, durability } = this.#options;
    this.#opened = openRedis(redis, {
      ...patientFor(durability?.timeout ?? 0),
      connectionName: 'carillon:outbox',
    });
    this.#opened.client.on('error', () => undefined);
    this.#scripts = new JobScripts(new Shard(this.#opened.client, { namespace, prefix }));
    const session = await this.#open().catch((error: unknown) => {
      if (isCarillonError(error)) throw error;
      this.#tellTrouble(error);
      return undefined;
    });
    this.#loop = this.#run(session, signal);
  }

  protected override async onStop(): Promise<void> {
    await this.#loop;
    if (this.#opened !== undefined) await closeRedis(this.#opened);
    this.#opened = undefined;
    this.#submitters.clear();
  }

  async #run(first: PostgresSession | undefined, signal: AbortSignal): Promise<void> {
    let session = first;
    let rest = FIRST_REST;
    while (!signal.aborted) {
      try {
        session ??= await this.#open();
        await this.#serve(session, signal, () => {
          rest = FIRST_REST;
        });
      } catch (error) {
        this.#tellTrouble(error);
        session?.drop();
        session = undefined;
        // Relays that lost the same server do not come back as one.
        await pause(rest / 2 + Math.random() * (rest / 2), signal);
        rest = Math.min(rest * 2, LONGEST_REST);
      }
    }
    await session?.close();
  }

  async #open(): Promise<PostgresSession> {
    const { database, table } = this.#options;
    const session = await PostgresSession.open(database);
    try {
      await session.query(`LISTEN ${channelOf(table)}`);
      await session.query(`SELECT tries, set_aside_at FROM ${table} LIMIT 0`);
    } catch (error) {
      session.drop();
      const { code } = error as { code?: string };
      if (code === undefined || !MISSING.includes(code)) throw error;
      throw new CarillonError('NOT_FOUND', `the database holds no outbox ${table}`, {
        field: 'table',
        given: table,
        todo: 'Run `carillon outbox migrate`.',
        cause: error,
      });
    }
    return session;
  }

  /** Rounds over one connection; throws when it, or Redis, fails. */
  async #serve(session: PostgresSession, signal: AbortSignal, served: () => void): Promise<void> {
    const rows = new OutboxRows(session, this.#options.table);
    while (!signal.aborted) {
      // Made before the look: a notification that comes during it is not slept over.
      const wake = new AbortController();
      // Not AbortSignal.any: Node has it from 20.3 on.
      const stop = () => wake.abort();
      session.onWake(stop);
      signal.addEventListener('abort', stop, { once: true });
      const more = await this.#round(rows);
      served();
      this.#tellReady();
      if (!more) await pause(this.#options.pollInterval, wake.signal);
      signal.removeEventListener('abort', stop);
      if (session.lost) throw new Error('the connection to PostgreSQL was lost');
    }
  }

  /** One transaction. @returns whether a full batch was taken, so that more may wait. */
  async #round(rows: OutboxRows): Promise<boolean> {
    const { batch } = this.#options;
    const taken = await rows.take(batch);
    const sent: StoredRow[] = [];
    let repeated = 0;
    let trouble: unknown;
    const later: FailedRow[] = [];
    const aside: FailedRow[] = [];
    await Promise.all(
      taken.map(async (row) => {
        let item: SubmitItem;
        try {
          item = itemOf(row, this.#options.duplicateWindow);
        } catch (error) {
          // Whoever inserted it wrote what is no job: nothing but a person can mend it.
          aside.push({ row, reason: textOf(error) });
          return;
        }
        try {
          const { answer } = await this.#send(row, item);
          sent.push(row);
          if (answer === 'existing' || answer === 'fired') repeated++;
        } catch (error) {
          const verdict = judge(error, row.tries);
          if (verdict === 'stop') trouble ??= error;
          else (verdict === 'later' ? later : aside).push({ row, reason: textOf(error) });
        }
      }),
    );
    await rows.remove(sent);
    for (const failed of later) await rows.leaveForLater(failed);
    for (const failed of aside) await rows.setAside(failed);
    await rows.commit();
    this.#report.sent += sent.length;
    this.#report.repeated += repeated;
    this.#report.setAside += aside.length;
    for (const { row, reason } of aside) {
      this.#logger.error({ id: row.id, queue: row.queue, reason }, 'a row was set aside');
    }
    if (sent.length > 0) this.#logger.debug({ sent: sent.length, repeated }, 'handed over');
    if (trouble !== undefined) throw trouble;
    return taken.length === batch;
  }

  /** Each row is a request of its own, under its id: whatever batch it comes in again, it is recognised. */
  async #send(row: StoredRow, item: SubmitItem): Promise<SubmitResult> {
    const [result] = await this.#submitter(row.queue).submit([item], row.id, this.#options.durability);
    return result as SubmitResult;
  }

  #submitter(queue: string): Submitter {
    let found = this.#submitters.get(queue);
    if (found === undefined) {
      found = new Submitter(this.#scripts as JobScripts, queue, { maxPending: 0, wall: Date.now });
      this.#submitters.set(queue, found);
    }
    return found;
  }

  #tellReady(): void {
    if (!this.#report.ready) this.#logger.info({}, 'serves');
    this.#report.ready = true;
    this.#report.trouble = undefined;
  }

  /** Once for each change: a server that is away for an hour is no thousand lines. */
  #tellTrouble(error: unknown): void {
    const text = textOf(error);
    if (this.#report.trouble !== text) this.#logger.warn({ reason: text }, 'waits for a server');
    this.#report.ready = false;
    this.#report.trouble = text;
  }
}

/** A connection is silent while its WAIT does. */
function patientFor(wait: number): RedisOptions {
  const { commandTimeout = 0, socketTimeout = 0, ...rest } = SCHEDULER_CONNECTION;
  return { ...rest, commandTimeout: commandTimeout + wait, socketTimeout: socketTimeout + wait };
}

/** Node tells of a host with two addresses by an error without a message. */
function textOf(error: unknown): string {
  const { code } = error as { code?: string };
  return (error instanceof Error && error.message) || code || String(error);
}
