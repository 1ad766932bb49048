import type { CallOptions } from '@grpc/grpc-js';
import { noop } from 'cockatiel';
import { Etcd3, type IKeyValue, type IRequestOp, type ITxnRequest, isRecoverableError } from 'etcd3';
import { CarillonError, isCarillonError } from '../../domain/errors.js';
import type { EtcdConnection } from './etcd-options.js';
import { EtcdUser } from './etcd-user.js';
import { readTls } from './tls-files.js';

/** One key of etcd. Revisions are whole numbers below 2^53, so that Lua's doubles hold them. */
export interface KeyValue {
  key: string;
  value: string;
  createRevision: number;
  modRevision: number;
  /** Decimal; `'0'` for none. */
  lease: string;
}

/** What must hold of a key; a create revision of 0 says that it does not exist. */
export type Condition = { key: string } & ({ createRevision: number } | { modRevision: number });

/** That a key is still as it was read; `undefined` for one that was not there. */
export function unchanged(key: string, found: { modRevision: number } | undefined): Condition {
  return found === undefined ? { key, createRevision: 0 } : { key, modRevision: found.modRevision };
}

export type Operation = { put: string; value: string; lease?: string } | { delete: string } | { get: string };

export interface Transaction {
  if: readonly Condition[];
  success: readonly Operation[];
  failure?: readonly Operation[];
}

export interface TransactionResult {
  succeeded: boolean;
  revision: number;
  /** What the `get`s of the branch that ran found, in their order. */
  found: (KeyValue | undefined)[];
}

/** The few calls that coordination makes on etcd. Each has a deadline; what failed may have been carried out. */
export interface EtcdClient {
  get(key: string): Promise<KeyValue | undefined>;
  /** All keys that begin with `prefix`, as of one revision. */
  range(prefix: string): Promise<{ revision: number; keys: KeyValue[] }>;
  txn(transaction: Transaction): Promise<TransactionResult>;
  /** `ttl` in seconds; etcd may grant a longer one. */
  grant(ttl: number): Promise<{ id: string; ttl: number }>;
  /** One attempt at one member. @returns the seconds left, 0 when there is no such lease. */
  keepAlive(id: string, timeout: number): Promise<number>;
  revoke(id: string): Promise<void>;
  /** Calls back when something under `prefix` may have changed: a hint that may be late or missing. */
  watch(prefix: string, onChange: () => void): { cancel(): void };
  close(): void;
}

/** ms between the end of a watch and the next attempt. */
const WATCH_AGAIN = 500;
/** etcd drops clients that ping more often than every 5 s. */
const CHANNEL = {
  'grpc.keepalive_time_ms': 6000,
  'grpc.keepalive_timeout_ms': 2000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.use_local_subchannel_pool': 1,
};

/** Opens no connection yet. The only place that knows etcd3, whose raw clients are used and nothing above them. */
export function openEtcd(connection: EtcdConnection): EtcdClient {
  return new RawEtcdClient(connection);
}

/**
 * One etcd3 client a member, and the rotation that etcd3's own retries cannot be trusted with: a member that fails or
 * is silent is left for the next one.
 */
class RawEtcdClient implements EtcdClient {
  readonly #members: readonly Etcd3[];
  readonly #timeout: number;
  readonly #user: EtcdUser | undefined;
  readonly #streams = new Set<{ cancel(): void }>();
  #current = 0;
  #closed = false;

  constructor({ hosts, tls, username, password, callTimeout }: EtcdConnection) {
    this.#timeout = callTimeout;
    this.#user = username === undefined ? undefined : new EtcdUser(username, password ?? '');
    const credentials = tls === undefined ? undefined : readTls(tls);
    this.#members = hosts.map(
      (host) =>
        new Etcd3({
          hosts: host,
          ...(credentials === undefined ? {} : { credentials }),
          grpcOptions: CHANNEL,
          faultHandling: { global: noop, host: () => noop },
        }),
    );
  }

  async get(key: string): Promise<KeyValue | undefined> {
    const reply = await this.#call((etcd, options) => etcd.kv.range({ key: Buffer.from(key) }, options));
    return reply.kvs.map(toKeyValue)[0];
  }

  async range(prefix: string): Promise<{ revision: number; keys: KeyValue[] }> {
    const reply = await this.#call((etcd, options) => etcd.kv.range(prefixRange(prefix), options));
    return { revision: Number(reply.header.revision), keys: reply.kvs.map(toKeyValue) };
  }

  async txn(transaction: Transaction): Promise<TransactionResult> {
    const request: ITxnRequest = {
      compare: transaction.if.map(toCompare),
      success: transaction.success.map(toRequest),
      failure: (transaction.failure ?? []).map(toRequest),
    };
    const reply = await this.#call((etcd, options) => etcd.kv.txn(request, options));
    const ran = reply.succeeded ? transaction.success : (transaction.failure ?? []);
    const found: (KeyValue | undefined)[] = [];
    ran.forEach((operation, i) => {
      if ('get' in operation) found.push(reply.responses[i]?.response_range?.kvs.map(toKeyValue)[0]);
    });
    return { succeeded: reply.succeeded, revision: Number(reply.header.revision), found };
  }

  async grant(ttl: number): Promise<{ id: string; ttl: number }> {
    const reply = await this.#call((etcd, options) => etcd.leaseClient.leaseGrant({ TTL: ttl }, options));
    return { id: reply.ID, ttl: Number(reply.TTL) };
  }

  async revoke(id: string): Promise<void> {
    await this.#call((etcd, options) => etcd.leaseClient.leaseRevoke({ ID: id }, options));
  }

  async keepAlive(id: string, timeout: number): Promise<number> {
    const used = this.#current;
    try {
      return await this.#keepAliveAt(this.#member(used), id, timeout);
    } catch (error) {
      if (!this.#user?.hasExpired(error)) this.#leave(used);
      throw etcdError(error);
    }
  }

  watch(prefix: string, onChange: () => void): { cancel(): void } {
    let stream: { cancel(): void } | undefined;
    let timer: NodeJS.Timeout | undefined;
    let ended = false;
    const open = () => {
      const used = this.#current;
      let over = false;
      const again = (error?: unknown) => {
        if (over || ended) return;
        over = true;
        if (!this.#user?.hasExpired(error)) this.#leave(used);
        timer = setTimeout(open, WATCH_AGAIN);
      };
      this.#openWatch(used, prefix).then((opened) => {
        stream = opened;
        opened.on('error', again);
        opened.on('end', () => opened.cancel());
        opened.on('data', ({ canceled }) => {
          onChange();
          // Refused, for its token say, or compacted away: the stream stays open and silent.
          if (!canceled) return;
          this.#user?.forget();
          again();
          opened.cancel();
        });
        if (ended) opened.cancel();
      }, again);
    };
    const watch = {
      cancel: () => {
        ended = true;
        clearTimeout(timer);
        stream?.cancel();
        this.#streams.delete(watch);
      },
    };
    this.#streams.add(watch);
    open();
    return watch;
  }

  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.cancel();
    for (const member of this.#members) member.close();
  }

  /** Tries each member once, beginning with the one that answered last. */
  async #call<T>(operation: (etcd: Etcd3, options: CallOptions) => Promise<T>): Promise<T> {
    let signedInAgain = false;
    for (let tried = 1; ; tried += 1) {
      const used = this.#current;
      try {
        const member = this.#member(used);
        const deadline = Date.now() + this.#timeout;
        return await operation(member, { ...(await this.#signedIn(member, this.#timeout)), deadline });
      } catch (error) {
        if (this.#closed) throw closed();
        if (!signedInAgain && this.#user?.hasExpired(error)) {
          signedInAgain = true;
          continue;
        }
        if (isRecoverable(error)) this.#leave(used);
        if (!isRecoverable(error) || tried >= this.#members.length) throw etcdError(error);
      }
    }
  }

  async #openWatch(index: number, prefix: string) {
    const member = this.#member(index);
    const stream = await member.watchClient.watch(await this.#signedIn(member, this.#timeout));
    stream.write({ create_request: prefixRange(prefix) });
    return stream;
  }

  /** What a call is made with besides its deadline. */
  async #signedIn(member: Etcd3, timeout: number): Promise<CallOptions> {
    if (this.#user === undefined) return {};
    return { interceptors: await this.#user.interceptors(member, Date.now() + timeout) };
  }

  async #keepAliveAt(etcd: Etcd3, id: string, timeout: number): Promise<number> {
    let timer: NodeJS.Timeout | undefined;
    let stream: { cancel(): void } | undefined;
    let over = false;
    try {
      return await new Promise<number>((resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer within ${timeout} ms`)), timeout);
        this.#signedIn(etcd, timeout)
          .then((options) => etcd.leaseClient.leaseKeepAlive(options))
          .then((opened) => {
            stream = opened;
            if (over) return opened.cancel();
            opened.on('error', reject);
            opened.on('end', () => reject(new Error('the stream ended')));
            opened.on('data', ({ TTL }) => resolve(Number(TTL)));
            opened.write({ ID: id });
          })
          .catch(reject);
      });
    } finally {
      over = true;
      clearTimeout(timer);
      stream?.cancel();
    }
  }

  #member(index: number): Etcd3 {
    if (this.#closed) throw closed();
    return this.#members[index] as Etcd3;
  }

  /** Only by whoever met it: another call may have gone on already. */
  #leave(used: number): void {
    if (this.#current === used) this.#current = (used + 1) % this.#members.length;
  }
}

function isRecoverable(error: unknown): boolean {
  return error instanceof Error && isRecoverableError(error);
}

function closed(): CarillonError {
  return new CarillonError('CLOSED', 'the connection to etcd is closed');
}

function etcdError(error: unknown): CarillonError {
  if (isCarillonError(error)) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new CarillonError('ETCD_UNAVAILABLE', `etcd: ${text}`, {
    field: 'etcd',
    todo: 'Check that the etcd members run, can be reached, and accept this user or certificate.',
    retryable: true,
    cause: error,
  });
}

/** The keys from the prefix up to the first that does not begin with it. */
function prefixRange(prefix: string): { key: Buffer; range_end: Buffer } {
  const key = Buffer.from(prefix);
  const end = Buffer.from(prefix);
  const last = end.length - 1;
  // A prefix of ours ends with a slash, never with the highest byte.
  end[last] = (end[last] as number) + 1;
  return { key, range_end: end };
}

function toKeyValue(found: IKeyValue): KeyValue {
  return {
    key: found.key.toString(),
    value: found.value.toString(),
    createRevision: Number(found.create_revision),
    modRevision: Number(found.mod_revision),
    lease: found.lease,
  };
}

function toCompare(condition: Condition) {
  const key = Buffer.from(condition.key);
  return 'createRevision' in condition
    ? ({ key, result: 'Equal', target: 'Create', create_revision: condition.createRevision } as const)
    : ({ key, result: 'Equal', target: 'Mod', mod_revision: condition.modRevision } as const);
}

function toRequest(operation: Operation): IRequestOp {
  if ('put' in operation) {
    const { put, value, lease } = operation;
    return {
      request_put: {
        key: Buffer.from(put),
        value: Buffer.from(value),
        ...(lease === undefined ? {} : { lease }),
      },
    };
  }
  if ('delete' in operation) return { request_delete_range: { key: Buffer.from(operation.delete) } };
  return { request_range: { key: Buffer.from(operation.get) } };
}
