import { MultiBar, Presets, type SingleBar } from 'cli-progress';
import type { Group } from './tally.js';

const REDRAW = 100;
const LINE_EVERY = 2000;

/** Live bars on a terminal; a line every two seconds elsewhere. */
export class Progress {
  readonly #bars = new Map<Group, SingleBar>();
  readonly #multi: MultiBar | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly groups: readonly Group[]) {
    const width = Math.max(...groups.map(({ name }) => name.length));
    if (process.stdout.isTTY) {
      this.#multi = new MultiBar(
        { format: '  {name} [{bar}] {value}/{total}', hideCursor: true, clearOnComplete: false },
        Presets.shades_classic,
      );
      for (const group of groups) {
        const name = group.name.padEnd(width);
        this.#bars.set(group, this.#multi.create(group.expected, group.run, { name }));
      }
    }
    this.#timer = setInterval(() => this.#show(), this.#multi === undefined ? LINE_EVERY : REDRAW);
  }

  /** Safe to call twice. */
  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#show();
    this.#multi?.stop();
  }

  #show(): void {
    if (this.#multi === undefined) {
      console.log(
        `  ${this.groups.map(({ name, run, expected }) => `${name} ${run}/${expected}`).join('   ')}`,
      );
      return;
    }
    for (const [group, bar] of this.#bars) bar.update(group.run);
  }
}
