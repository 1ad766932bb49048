import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { onCleanup } from './cleanup.js';
import { type Direction, type DropOrder, FaultLink } from './fault-link.js';

export interface FaultProxyOptions {
  /** The server's port. */
  port: number;
  /** The server's host. Defaults to 127.0.0.1. */
  host?: string;
  /** `redis` knows requests from replies, which `dropReplies` needs; `raw` passes bytes. Defaults to `redis`. */
  protocol?: 'redis' | 'raw';
}

/**
 * A TCP proxy in this process that puts the faults of a network between a client and its server. Ends with the test.
 */
export class FaultProxy {
  /** Connections accepted since the start. */
  accepted = 0;
  #server: Server;
  #port = 0;
  #links = new Set<FaultLink>();
  #delay: Record<Direction, number> = { up: 0, down: 0 };
  #paused = new Set<Direction>();
  #losing = new Set<Direction>();
  #held: { matching: string | RegExp; requests: number } | undefined;
  #claims: ((request: Buffer) => DropOrder | undefined)[] = [];
  #cleanup: (() => void) | undefined;

  private constructor(private readonly options: FaultProxyOptions) {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  static async start(options: FaultProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options);
    await proxy.#listen();
    proxy.#cleanup = onCleanup(`proxy on port ${proxy.port}`, () => proxy.stop());
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  /** Connections that clients hold open now. */
  get connections(): number {
    return [...this.#links].filter((link) => link.open).length;
  }

  /** As if the server had died: connections are reset and new ones refused, until `resume()`. */
  async suspend(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.reset();
    await closed;
  }

  /**
   * A black hole: nothing goes that way any more, not even the news that a side has closed, though connections are
   * accepted. What was sent meanwhile arrives after `resume()`, as TCP would re-send it.
   */
  pause(direction: Direction | 'both' = 'both'): void {
    for (const way of ways(direction)) {
      this.#paused.add(way);
      for (const link of this.#links) link.gates[way].close();
    }
  }

  /**
   * Bytes that go that way are thrown away. A connection that lost some is reset by `resume()`: what it was sent never
   * arrives, unlike after {@link pause}.
   */
  lose(direction: Direction | 'both' = 'both'): void {
    for (const way of ways(direction)) this.#losing.add(way);
  }

  /**
   * Each connection stops at its next request whose bytes, read as latin1, contain this text or match this pattern: it
   * and what follows it reach the server after `resume()`.
   * @returns how many requests wait so far.
   */
  hold(matching: string | RegExp): { readonly requests: number } {
    if (this.options.protocol === 'raw') throw new Error("hold needs the protocol 'redis'");
    this.#held = { matching, requests: 0 };
    return this.#held;
  }

  /** A black hole for the connections that are open now; new ones work. */
  freezeOpen(): void {
    for (const link of this.#links) {
      link.gates.up.close();
      link.gates.down.close();
    }
  }

  /** Ends `suspend()`, `pause()`, `lose()`, `hold()` and `freezeOpen()`. */
  async resume(): Promise<void> {
    this.#paused.clear();
    this.#losing.clear();
    this.#held = undefined;
    for (const link of [...this.#links]) {
      if (link.torn) link.reset();
      link.gates.up.open();
      link.gates.down.open();
    }
    if (!this.#server.listening) await this.#listen();
  }

  /** Cuts all connections that are open now; new ones are welcome. */
  reset(): void {
    for (const link of [...this.#links]) link.reset();
  }

  /** Adds latency to one direction or both, in milliseconds; 0 ends it. */
  delay(ms: number, direction: Direction | 'both' = 'both'): void {
    if (direction !== 'down') this.#delay.up = ms;
    if (direction !== 'up') this.#delay.down = ms;
  }

  /**
   * Drops the replies to the next `count` requests: each is carried out by the server, its reply swallowed with all
   * that follow it, and the connection reset. With `then: 'hold'` they come after `resume()` instead. Not for
   * connections that subscribe.
   *
   * @param matching only requests whose bytes, read as latin1, contain this text or match this pattern.
   */
  dropReplies(count = 1, matching?: string | RegExp, then: 'reset' | 'hold' = 'reset'): DropOrder {
    if (this.options.protocol === 'raw') throw new Error("dropReplies needs the protocol 'redis'");
    let unclaimed = count;
    let dropped = 0;
    const order: DropOrder = {
      get remaining() {
        return count - dropped;
      },
      get dropped() {
        return dropped;
      },
      then,
      done: () => {
        dropped += 1;
      },
    };
    this.#claims.push((request) => {
      if (unclaimed === 0 || !matches(request, matching)) return undefined;
      unclaimed -= 1;
      return order;
    });
    return order;
  }

  /** Ends the proxy and all its connections. Safe to call twice. */
  async stop(): Promise<void> {
    this.#cleanup?.();
    await this.suspend();
  }

  async #listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #accept(client: Socket): void {
    this.accepted += 1;
    const { port, host = '127.0.0.1' } = this.options;
    const server = connect({ port, host, allowHalfOpen: true, noDelay: true });
    const link = new FaultLink(client, server, {
      framed: this.options.protocol !== 'raw',
      delayOf: (direction) => this.#delay[direction],
      loses: (direction) => this.#losing.has(direction),
      holds: (request) => this.#holds(request),
      claim: (request) => this.#claim(request),
    });
    for (const direction of this.#paused) link.gates[direction].close();
    this.#links.add(link);
    link.whenClosed(() => this.#links.delete(link));
  }

  #holds(request: Buffer): boolean {
    if (this.#held === undefined || !matches(request, this.#held.matching)) return false;
    this.#held.requests += 1;
    return true;
  }

  #claim(request: Buffer): DropOrder | undefined {
    for (const claim of this.#claims) {
      const order = claim(request);
      if (order !== undefined) return order;
    }
    return undefined;
  }
}

function ways(direction: Direction | 'both'): readonly Direction[] {
  return direction === 'both' ? ['up', 'down'] : [direction];
}

function matches(request: Buffer, matching: string | RegExp | undefined): boolean {
  if (matching === undefined) return true;
  const text = request.toString('latin1');
  return typeof matching === 'string' ? text.includes(matching) : matching.test(text);
}
