/** A set of runs that are judged together: the jobs of one step, or the ticks of all schedules. */
export interface Group {
  readonly name: string;
  expected: number;
  /** Distinct runs that were handled. */
  run: number;
  lost: number;
  doubled: number;
  early: number;
  /** ms from fire time to the handler's start, of each run. */
  lags: number[];
  /** When its last handler started, ms by Redis' clock; 0 before the first. */
  lastStart: number;
}

interface Run {
  readonly group: Group;
  readonly fireAt: number;
  handled: boolean;
}

/** What should run, held against what did. */
export class Tally {
  readonly #groups = new Map<string, Group>();
  readonly #runs = new Map<string, Run>();
  /** Handled before they were known: a run may be quicker than the answer to its submit. */
  readonly #unknown = new Map<string, number[]>();

  group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = { name, expected: 0, run: 0, lost: 0, doubled: 0, early: 0, lags: [], lastStart: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }

  get groups(): Group[] {
    return [...this.#groups.values()];
  }

  /** @param fireAt ms, as Carillon answered it. */
  expect(groupName: string, queue: string, runId: string, fireAt: number): void {
    const key = `${queue} ${runId}`;
    const group = this.group(groupName);
    this.#runs.set(key, { group, fireAt, handled: false });
    group.expected += 1;
    group.lost += 1;
    const before = this.#unknown.get(key) ?? [];
    this.#unknown.delete(key);
    for (const startedAt of before) this.handled(queue, runId, startedAt);
  }

  /** @param startedAt ms by Redis' clock. */
  handled(queue: string, runId: string, startedAt: number): void {
    const key = `${queue} ${runId}`;
    const run = this.#runs.get(key);
    if (run === undefined) {
      this.#unknown.set(key, [...(this.#unknown.get(key) ?? []), startedAt]);
      return;
    }
    const { group } = run;
    if (run.handled) {
      group.doubled += 1;
      return;
    }
    run.handled = true;
    group.run += 1;
    group.lost -= 1;
    if (startedAt < run.fireAt) group.early += 1;
    group.lags.push(startedAt - run.fireAt);
    group.lastStart = Math.max(group.lastStart, startedAt);
  }

  /** Runs that were handled and that nobody expects. */
  get unexpected(): string[] {
    return [...this.#unknown.keys()];
  }

  get lost(): number {
    return this.groups.reduce((sum, group) => sum + group.lost, 0);
  }

  /** Nothing lost, doubled or early. */
  get good(): boolean {
    return this.groups.every(({ lost, doubled, early }) => lost + doubled + early === 0);
  }
}
