/**
 * A clock that stands still until told. `now` and `monotonic` can be handed out as plain functions. Wall time may jump
 * either way, monotonic time only goes forward, as on a real machine.
 */
export class ManualClock {
  #wall: number;
  #monotonic = 0;

  /** @param start wall time at first: a date string or ms since 1970. Defaults to 2026-01-01T00:00:00Z. */
  constructor(start: string | number = '2026-01-01T00:00:00Z') {
    this.#wall = new Date(start).getTime();
  }

  /** Wall time in ms since 1970. */
  readonly now = (): number => this.#wall;

  /** Monotonic time in ms since the clock was made. */
  readonly monotonic = (): number => this.#monotonic;

  /** Both times go on by `ms`. */
  advance(ms: number): void {
    if (ms < 0) throw new Error('time does not go back; use jumpWall()');
    this.#wall += ms;
    this.#monotonic += ms;
  }

  /** Only the wall clock is set, as by NTP or an operator. */
  jumpWall(to: string | number): void {
    this.#wall = new Date(to).getTime();
  }
}
