import { Socket } from 'node:net';
import { CarillonError } from '../domain/errors.js';

/** What the relay asks of a client of node-postgres. */
interface PostgresClient {
  connect(): Promise<unknown>;
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
  on(event: 'error' | 'end' | 'notification', listener: () => void): unknown;
  end(): Promise<void>;
}

interface Driver {
  Client: new (options: object) => PostgresClient;
}

/** ms; a server that does not answer is given up, and asked again over another connection. */
const CONNECTS = 5000;
const ANSWERS = 15_000;

/** One connection to PostgreSQL: statements, and the wake-ups of LISTEN. Lost once, it stays lost. */
export class PostgresSession {
  #lost = false;
  #wake: () => void = () => undefined;

  private constructor(
    private readonly client: PostgresClient,
    private readonly socket: () => Socket,
  ) {
    const lost = () => {
      this.#lost = true;
      this.#wake();
    };
    client.on('error', lost);
    client.on('end', lost);
    client.on('notification', () => this.#wake());
  }

  /** @throws CarillonError UNSUPPORTED without the package pg; else what the driver throws. */
  static async open(url: string): Promise<PostgresSession> {
    const { Client } = await driver();
    let socket = new Socket();
    const client = new Client({
      connectionString: url,
      application_name: 'carillon outbox',
      connectionTimeoutMillis: CONNECTS,
      query_timeout: ANSWERS,
      keepAlive: true,
      // Ours, so that a connection to a frozen server can be dropped instead of being waited for.
      stream: () => {
        socket = new Socket();
        return socket;
      },
    });
    const session = new PostgresSession(client, () => socket);
    try {
      await client.connect();
    } catch (error) {
      session.drop();
      throw error;
    }
    return session;
  }

  get lost(): boolean {
    return this.#lost;
  }

  async query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
    return (await this.client.query(text, values)).rows;
  }

  /** Calls `wake` at each notification, and when the connection is lost. */
  onWake(wake: () => void): void {
    this.#wake = wake;
  }

  /** Says good-bye when the server listens. */
  async close(): Promise<void> {
    if (this.#lost) return this.drop();
    const polite = setTimeout(() => this.drop(), CONNECTS);
    await this.client.end().catch(() => undefined);
    clearTimeout(polite);
    this.drop();
  }

  /** Ends it at once; the server rolls back what was under way. */
  drop(): void {
    this.#lost = true;
    this.socket().destroy();
  }
}

/** Loaded when it is needed: an application without an outbox has no driver. */
async function driver(): Promise<Driver> {
  let loaded: Driver & { default?: Driver };
  try {
    loaded = (await import('pg')) as unknown as Driver & { default?: Driver };
  } catch (cause) {
    throw new CarillonError('UNSUPPORTED', 'the package pg is not installed', {
      field: 'pg',
      todo: 'Run npm install pg@8: the outbox speaks to PostgreSQL by it.',
      cause,
    });
  }
  return loaded.default ?? loaded;
}
