import type { Socket } from 'node:net';
import { FaultGate } from './fault-gate.js';
import { isPush, RespFrames } from './resp-frames.js';

/** `up` is from client to server, `down` from server to client. */
export type Direction = 'up' | 'down';

/** The order to drop a number of replies; see `FaultProxy.dropReplies`. */
export interface DropOrder {
  /** Replies still to be dropped. */
  readonly remaining: number;
  readonly dropped: number;
  readonly then: 'reset' | 'hold';
  /** Called by the link when it has dropped one. */
  done(): void;
}

/** What a link asks of its proxy. */
interface Orders {
  readonly framed: boolean;
  /** Extra latency of a direction, in milliseconds. */
  delayOf(direction: Direction): number;
  /** Whether bytes that go this way are thrown away now. */
  loses(direction: Direction): boolean;
  /** Whether this request, and what follows it, shall wait. */
  holds(request: Buffer): boolean;
  /** The order that wants the reply to this request dropped, if any. */
  claim(request: Buffer): DropOrder | undefined;
}

/** One proxied connection: the client's socket, the server's, and a gate each way. */
export class FaultLink {
  readonly gates: Record<Direction, FaultGate> = { up: new FaultGate(), down: new FaultGate() };
  #requests = new RespFrames();
  #replies = new RespFrames();
  /** One entry a request without reply yet; the order, if its reply is to be dropped. */
  #unanswered: (DropOrder | undefined)[] = [];
  #cut = false;
  /** Bytes of it were thrown away: what would come now makes no sense to either side. */
  torn = false;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly orders: Orders,
  ) {
    client.on('data', (chunk) => this.#upward(chunk));
    server.on('data', (chunk) => this.#downward(chunk));
    this.#join(client, server, 'up');
    this.#join(server, client, 'down');
  }

  /** The client has not hung up, whatever the server has. */
  get open(): boolean {
    return !this.client.destroyed && !this.client.readableEnded;
  }

  /** Calls `then` when both sides are closed. */
  whenClosed(then: () => void): void {
    const check = () => {
      if (this.client.closed && this.server.closed) then();
    };
    this.client.once('close', check);
    this.server.once('close', check);
  }

  /** Ends both sides at once with a reset, gates or not. */
  reset(): void {
    this.#cut = true;
    for (const gate of Object.values(this.gates)) gate.clear();
    this.client.resetAndDestroy();
    this.server.resetAndDestroy();
  }

  /** The client's side is cut; the server reads what it was sent to the end, so that every request is carried out. */
  #loseReplies(): void {
    this.#cut = true;
    for (const order of this.#unanswered.splice(0)) order?.done();
    this.client.resetAndDestroy();
    this.server.removeAllListeners('data').resume().end();
  }

  #upward(chunk: Buffer): void {
    for (const frame of this.orders.framed ? this.#requests.push(chunk) : [chunk]) {
      if (this.orders.framed && this.orders.holds(frame)) this.gates.up.close();
      this.#send('up', frame, () => this.#unanswered.push(this.orders.claim(frame)));
    }
  }

  #downward(chunk: Buffer): void {
    for (const frame of this.orders.framed ? this.#replies.push(chunk) : [chunk]) {
      const order = isPush(frame) ? undefined : this.#unanswered.shift();
      if (order?.then === 'reset') {
        // Swallowing alone would give the client the next reply for this request, which no network does.
        this.gates.down.put(() => this.#loseReplies(), 0);
        order.done();
        return;
      }
      if (order?.then === 'hold') {
        this.gates.down.close();
        order.done();
      }
      this.#send('down', frame);
    }
  }

  #send(direction: Direction, bytes: Buffer, before?: () => void): void {
    const to = direction === 'up' ? this.server : this.client;
    this.gates[direction].put(() => {
      if (this.#cut || to.destroyed) return;
      if (this.torn || this.orders.loses(direction)) {
        this.torn = true;
        return;
      }
      before?.();
      to.write(bytes);
    }, this.orders.delayOf(direction));
  }

  /** Passes the end of one side on to the other, behind the bytes and through the gate like them. */
  #join(from: Socket, to: Socket, direction: Direction): void {
    const pass = (act: () => void) => this.gates[direction].put(act, this.orders.delayOf(direction));
    from.on('end', () => pass(() => to.end()));
    from.on('error', () => pass(() => to.resetAndDestroy()));
  }
}
