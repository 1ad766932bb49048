/** A key as etcd's JSON gateway tells it. */
export interface EtcdKey {
  key: string;
  value: string;
  /** Decimal text; '0' for a key without a lease. */
  lease: string;
  createRevision: number;
}

/**
 * What an operator or an accident does to an etcd, by its JSON gateway: apart from the client under test, so that neither
 * hides the other's faults.
 */
export class EtcdGateway {
  constructor(private readonly url: string) {}

  async range(prefix: string): Promise<EtcdKey[]> {
    const { kvs = [] } = await this.#call<{ kvs?: RawKey[] }>('kv/range', span(prefix));
    return kvs.map(({ key, value = '', lease = '0', create_revision }) => ({
      key: decode(key),
      value: decode(value),
      lease,
      createRevision: Number(create_revision),
    }));
  }

  async put(key: string, value: string): Promise<void> {
    await this.#call('kv/put', { key: encode(key), value: encode(value) });
  }

  async delete(key: string): Promise<void> {
    await this.#call('kv/deleterange', { key: encode(key) });
  }

  async revoke(lease: string): Promise<void> {
    await this.#call('lease/revoke', { ID: lease });
  }

  /** This member's id and its leader's. */
  async status(): Promise<{ member: string; leader: string }> {
    const { header, leader = '0' } = await this.#call<{ header: { member_id: string }; leader?: string }>(
      'maintenance/status',
      {},
    );
    return { member: header.member_id, leader };
  }

  async #call<T>(path: string, body: object): Promise<T> {
    const response = await fetch(`${this.url}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(3000),
      // undici would keep a socket open, which a test must not leave behind.
      headers: { connection: 'close' },
    });
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }
}

interface RawKey {
  key: string;
  value?: string;
  lease?: string;
  create_revision: string;
}

/** All keys that begin with `prefix`. */
function span(prefix: string) {
  const end = Buffer.from(prefix);
  end.writeUInt8((end.at(-1) ?? 0) + 1, end.length - 1);
  return { key: encode(prefix), range_end: end.toString('base64') };
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString();
}
