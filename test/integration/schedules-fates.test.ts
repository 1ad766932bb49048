import { describe, expect, test } from 'vitest';
import { isCarillonError } from '../../src/domain/errors.js';
import { tickRunId } from '../../src/domain/ids.js';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import type { LedgerRow } from '../../src/redis/schedule-scripts.js';
import { type SeededRandom, seededRandom } from '../property/seeded-random.js';
import { History } from '../support/history.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';

const MINUTE = 60_000;
const START = Date.parse('2026-01-15T12:00:30Z');
const SEEDS = process.env.CARILLON_LONG === '1' ? 50 : 4;
const STEPS = 70;
const SCHEDULES = 12;

const MISSED = ['skip', 'latest', 'all'] as const;
const OVERLAPS = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allow'] as const;

/** Every overlap policy with every missed policy comes up, the rest by chance. */
function policiesOf(index: number, random: SeededRandom): ScheduleDefinition {
  const overlap = OVERLAPS[index % OVERLAPS.length] ?? 'skip';
  return {
    cron: '* * * * *',
    keepRuns: 255,
    missed: MISSED[index % MISSED.length] ?? 'skip',
    overlap,
    grace: random.pick(['5s', '30s', '45s']),
    catchupWindow: random.pick(['3m', '1d']),
    maxCatchup: random.pick([3, 100]),
    onTooMany: random.pick(['refuse', 'newest']),
    maxOpenRuns: random.pick([4, 32]),
    ...random.pick([{}, { limit: 9 }, { limit: 25 }]),
    ...(overlap === 'allow' ? {} : { maxConcurrent: random.pick([1, 2]) }),
  };
}

/** The ticks that a row of the ledger stands for, ms. */
function ticksOf({ scheduledFor, reason }: LedgerRow): number[] {
  const span = /every tick from (\S+) to (\S+)$/.exec(reason);
  if (span === null) return [scheduledFor];
  const ticks: number[] = [];
  for (let at = Date.parse(span[1] ?? ''); at <= Date.parse(span[2] ?? ''); at += MINUTE) ticks.push(at);
  return ticks;
}

/** A tick that gave way while it waited for its turn: it ends there, and no row tells of a start. */
function neverStarted(row: LedgerRow, ran: readonly LedgerRow[]): boolean {
  if (row.what !== 'cancelled') return false;
  const isItsStart = ({ scheduledFor, suffix, at }: LedgerRow) =>
    scheduledFor === row.scheduledFor && suffix === row.suffix && at <= row.at;
  return !ran.some(isItsStart);
}

class Town {
  paused = new Set<string>();

  constructor(
    readonly world: ScheduleWorld,
    readonly definitions: Map<string, ScheduleDefinition>,
    private scheduler: Awaited<ReturnType<ScheduleWorld['startScheduler']>>,
  ) {}

  /** One thing that happens. */
  async step(random: SeededRandom): Promise<void> {
    const { world } = this;
    const id = random.pick([...this.definitions.keys()]);
    switch (
      random.pick([
        'tick',
        'tick',
        'tick',
        'while',
        'end',
        'end',
        'outage',
        'pause',
        'trigger',
        'backfill',
        'edit',
      ])
    ) {
      case 'tick':
        return world.passTo((await world.now()) + MINUTE);
      case 'while':
        return world.passTo((await world.now()) + random.below(MINUTE));
      case 'end':
        await this.#endSome(random);
        return world.look();
      case 'outage':
        await this.scheduler.stop();
        await world.setClock((await world.now()) + random.below(9 * MINUTE));
        this.scheduler = await world.startScheduler();
        return world.settle();
      case 'pause':
        if (this.paused.delete(id)) await world.schedules.get(id).resume();
        else {
          await world.schedules.get(id).pause();
          this.paused.add(id);
        }
        return world.settle();
      case 'edit': {
        // Its times stay, and how many runs may be open.
        const edited = { ...this.definitions.get(id), missed: random.pick(MISSED) } as ScheduleDefinition;
        this.definitions.set(id, edited);
        await world.schedules.upsert(id, edited);
        return world.settle();
      }
      case 'trigger':
        // Refused when it has as many open runs as it may.
        await world.schedules
          .get(id)
          .trigger()
          .catch((error: unknown) => {
            if (!isCarillonError(error, 'QUOTA')) throw error;
          });
        return world.settle();
      default: {
        const to = (await world.now()) - random.below(5 * MINUTE);
        await world.schedules.get(id).backfill({ from: to - random.below(5 * MINUTE), to });
        return world.settle();
      }
    }
  }

  /** As a worker that keeps no finished jobs would. */
  async #endSome(random: SeededRandom): Promise<void> {
    for (const runId of await this.world.runIds()) {
      if (random.below(2) === 0) await this.world.queue.remove(runId);
    }
  }

  /** No more runs of a schedule stand in the queue than its policy lets; what a person triggered comes on top. */
  async expectWithinBounds(): Promise<void> {
    const standing = new Map<string, number>();
    for (const runId of await this.world.runIds()) {
      const [id = '', rest = ''] = runId.split('@');
      if (rest.includes('+')) continue;
      standing.set(id, (standing.get(id) ?? 0) + 1);
    }
    for (const [id, { overlap, maxConcurrent = 1, maxOpenRuns = 0 }] of this.definitions) {
      const most = overlap === 'allow' ? maxOpenRuns : maxConcurrent;
      expect(standing.get(id) ?? 0, `open runs of ${id}`).toBeLessThanOrEqual(most);
    }
  }
}

describe.each(['on', 'off'] as const)('every tick has one fate, fence check %s', (fence) => {
  test.each(Array.from({ length: SEEDS }, (_, i) => i + 1))(
    'whatever happens (seed %i)',
    async (seed) => {
      const random = seededRandom(seed);
      const world = await ScheduleWorld.at(
        new Date(START).toISOString(),
        { name: `fates ${seed} ${fence}` },
        { fence },
      );
      await History.keep(world.spine, QUEUE);
      const definitions = new Map<string, ScheduleDefinition>();
      for (let index = 0; index < SCHEDULES; index++) {
        const definition = policiesOf(index, random);
        definitions.set(`s${index}`, definition);
        await world.schedules.upsert(`s${index}`, definition);
      }
      const town = new Town(world, definitions, await world.startScheduler());
      for (let step = 0; step < STEPS; step++) {
        await town.step(random);
        await town.expectWithinBounds();
      }
      for (const id of town.paused) await world.schedules.get(id).resume();
      await world.passTo((await world.now()) + MINUTE);

      const { added } = await History.read(world.spine, QUEUE);
      for (const [id, { overlap, limit }] of definitions) {
        const info = await world.schedules.get(id).describe();
        const rows = await world.spine.schedules.ledger(QUEUE, id);
        expect(rows.length).toBeLessThan(255);
        const ran = rows.filter(({ what }) =>
          ['dispatched', 'caught up', 'backfilled', 'triggered'].includes(what),
        );

        // The queue holds what the ledger says, each once, and nothing came early.
        const entered = [...added].filter(([runId]) => runId.startsWith(`${id}@`));
        const told = ran.map(({ scheduledFor, suffix }) => [tickRunId(id, scheduledFor) + suffix, 1]);
        expect(entered.sort()).toEqual(told.sort());
        for (const { at, scheduledFor } of ran) expect(at).toBeGreaterThanOrEqual(scheduledFor);

        // Each tick that came ran, waits, or is told as skipped: one of them, once.
        const own = rows.filter(
          (row) =>
            ['dispatched', 'caught up', 'skipped', 'refused'].includes(row.what) || neverStarted(row, ran),
        );
        const waits = (info?.waiting ?? []).filter(({ kind }) => kind === 'tick' || kind === 'catchUp');
        const fates = [...own.flatMap(ticksOf), ...waits.map(({ scheduledFor }) => scheduledFor)].sort(
          (a, b) => a - b,
        );
        const due: number[] = [];
        for (let at = START + MINUTE / 2; at <= (info?.last ?? 0); at += MINUTE) due.push(at);
        expect(
          fates.map((at) => new Date(at).toISOString()),
          id,
        ).toEqual(due.map((at) => new Date(at).toISOString()));

        // A limit counts what ran, or is sure to: not what gave way.
        const came = own.filter(({ what }) => what === 'dispatched' || what === 'caught up');
        const withdrawn = came.filter((start) =>
          rows.some(
            ({ what, scheduledFor, suffix }) =>
              what === 'cancelled' && scheduledFor === start.scheduledFor && suffix === start.suffix,
          ),
        );
        expect(info?.count, id).toBe(came.length - withdrawn.length + waits.length);
        expect(info?.count).toBeLessThanOrEqual(limit ?? 255);
        if (info?.state === 'ended') expect(info.count, id).toBe(limit);

        // In order, unless runs may overlap.
        const order = ran.filter(({ what }) => what === 'dispatched' || what === 'caught up');
        const times = order.map(({ scheduledFor }) => scheduledFor);
        if (overlap !== 'allow') expect(times, id).toEqual(times.toSorted((a, b) => a - b));
      }
      await expectHealthy(world.spine);
    },
    120_000,
  );
});
