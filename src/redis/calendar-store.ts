import { BUCKETS } from '../domain/buckets.js';
import {
  type Calendar,
  type CalendarEntry,
  type CalendarSet,
  calendarLine,
  readCalendar,
} from '../domain/calendar.js';
import { CarillonError } from '../domain/errors.js';
import { asList, asNumber, asText } from './replies.js';
import { requestHash } from './request-id.js';
import type { Shard } from './shard.js';
import { redisError, statusError } from './status.js';

/** A calendar with what its store knows of it. */
export interface StoredCalendar extends Calendar {
  /** When its dates were last changed, ms of Redis' clock. */
  readonly updatedAt: number;
  /** Whether every schedule that names it was handed to the planner since. */
  readonly settled: boolean;
}

export interface CalendarWritten {
  version: number;
  /** False when the dates stand as they were given, and when this very call was made before. */
  changed: boolean;
}

/** The field that rises with every change; no calendar can have this name. */
const REVISION = ':revision';
/** Fields of one HSCAN: each may hold 10,000 dates. */
const CALENDARS_A_PAGE = 10;
const RECORDS_A_PAGE = 200;

/** The stored calendars of a namespace, and the way from a changed one to the schedules that name it. */
export class CalendarStore {
  #known: { revision: string; calendars: Map<string, Calendar>; absent: Set<string> } | undefined;

  /** The revision up to which all is settled. */
  #settled = '';

  constructor(private readonly shard: Shard) {}

  /** @param entries as `readCalendar` gave them. @throws CarillonError */
  async set(name: string, entries: readonly CalendarEntry[], requestId: string): Promise<CalendarWritten> {
    const lines = JSON.stringify(entries.map(calendarLine));
    return this.#write('deny-oom', 'set', name, requestId, lines);
  }

  /** Deletes it; its version goes on from there if the name is used again. @throws CarillonError NOT_FOUND */
  async delete(name: string, requestId: string): Promise<CalendarWritten> {
    if (!(await this.exists(name))) throw notFound(name);
    return this.#write('allow-oom', 'delete', name, requestId, '');
  }

  /** Whether there is or ever was a calendar of this name. Asking creates nothing. */
  async exists(name: string): Promise<boolean> {
    return (await this.#asking(() => this.shard.client.hexists(this.shard.keys.calendars, name))) === 1;
  }

  async get(name: string): Promise<StoredCalendar | undefined> {
    const text = await this.#asking(() => this.shard.client.hget(this.shard.keys.calendars, name));
    return text === null ? undefined : parse(name, text);
  }

  /** All calendars, one page after the other; in no order. */
  async *list(): AsyncGenerator<StoredCalendar> {
    const seen = new Set<string>();
    for await (const [name, text] of this.#fields()) {
      if (seen.has(name)) continue;
      seen.add(name);
      const calendar = parse(name, text);
      if (calendar !== undefined) yield calendar;
    }
  }

  /**
   * The calendars of these names, for `compileExclusions`; those that do not exist are left out. They are read again
   * only after some calendar was changed, and the set stays the same object until then.
   */
  async named(names: readonly string[]): Promise<CalendarSet> {
    const { client, keys } = this.shard;
    const revision = await this.#revision();
    if (this.#known?.revision !== revision) {
      this.#known = { revision, calendars: new Map(), absent: new Set() };
    }
    const { calendars, absent } = this.#known;
    const wanted = names.filter((name) => !calendars.has(name) && !absent.has(name));
    if (wanted.length === 0) return calendars;
    const [now, ...texts] = await this.#asking(() => client.hmget(keys.calendars, REVISION, ...wanted));
    // Changed while we asked: what was read must not be mixed with what was known.
    if ((now ?? '') !== revision) return this.named(names);
    wanted.forEach((name, i) => {
      const calendar = texts[i] == null ? undefined : parse(name, texts[i]);
      if (calendar === undefined) absent.add(name);
      else calendars.set(name, calendar);
    });
    return calendars;
  }

  /** The identities of the schedules that name a calendar, bucket by bucket. One may come twice. */
  async *users(name: string): AsyncGenerator<string[]> {
    yield* this.#walkUsers(name, false);
  }

  /**
   * Hands the pending ticks of every schedule that names the calendar to the planner, which computes them again; ticks
   * whose time has come stay. Safe to repeat; a walk that was cut short is taken up by {@link settleAll}.
   * @returns how many schedules.
   */
  async settle(name: string, version: number): Promise<number> {
    let count = 0;
    for await (const identities of this.#walkUsers(name, true)) count += identities.length;
    await this.#write('allow-oom', 'settle', name, '', String(version));
    return count;
  }

  /** As {@link settle}, unless no change is left to be handed on; a call that repeats another may find one. */
  async settleIfNeeded(name: string): Promise<number> {
    const text = await this.#asking(() => this.shard.client.hget(this.shard.keys.calendars, name));
    const { version, settled } = header(text ?? '');
    return settled < version ? this.settle(name, version) : 0;
  }

  /**
   * Finishes what clients began that died between the change of a calendar and the end of its {@link settle}. For a
   * leader to call now and then: it reads one small field unless some calendar was changed since.
   */
  async settleAll(): Promise<void> {
    const revision = await this.#revision();
    if (revision === this.#settled) return;
    for await (const [name, text] of this.#fields()) {
      const { version, settled } = header(text);
      if (settled < version) await this.settle(name, version);
    }
    this.#settled = revision;
  }

  /** Rises with every change of any calendar; empty before the first. */
  async #revision(): Promise<string> {
    const { client, keys } = this.shard;
    return (await this.#asking(() => client.hget(keys.calendars, REVISION))) ?? '';
  }

  async *#fields(): AsyncGenerator<[name: string, text: string]> {
    const { client, keys } = this.shard;
    let cursor = '0';
    do {
      const [next, list] = await this.#asking(() =>
        client.hscan(keys.calendars, cursor, 'COUNT', CALENDARS_A_PAGE),
      );
      cursor = next;
      for (let i = 0; i < list.length; i += 2) {
        if (list[i] !== REVISION) yield [list[i] as string, list[i + 1] as string];
      }
    } while (cursor !== '0');
  }

  async *#walkUsers(name: string, replan: boolean): AsyncGenerator<string[]> {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      let cursor = '0';
      do {
        const { status, rest } = await this.shard.run('calendar-users', replan ? 'deny-oom' : 'read-only', [
          bucket,
          cursor,
          RECORDS_A_PAGE,
          name,
          replan ? 1 : 0,
        ]);
        if (status !== 'OK') throw statusError(status);
        cursor = asText(rest[0]);
        const identities = asList(rest[1]).map(asText);
        if (identities.length > 0) yield identities;
      } while (cursor !== '0');
    }
  }

  async #write(
    flag: 'deny-oom' | 'allow-oom',
    operation: 'set' | 'delete' | 'settle',
    name: string,
    requestId: string,
    given: string,
  ): Promise<CalendarWritten> {
    const request = operation === 'settle' ? '' : requestHash(operation, requestId).toString('hex');
    const { status, rest } = await this.shard.run('set-calendar', flag, [operation, name, request, given]);
    if (status === 'NOT_FOUND') throw notFound(name);
    if (status !== 'OK') throw statusError(status);
    return { version: asNumber(rest[0]), changed: asNumber(rest[1]) === 1 };
  }

  async #asking<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw redisError(error);
    }
  }
}

/** The error of a calendar that does not exist. */
export function notFound(name: string): CarillonError {
  return new CarillonError('NOT_FOUND', `there is no calendar ${name}`, {
    field: 'calendar',
    given: name,
    todo: 'Check the name; `carillon calendars list` shows all.',
  });
}

/** The numbers before the dates, which may be long. */
function header(text: string): { version: number; updatedAt: number; settled: number } {
  const [, version, updatedAt, settled] =
    /^\{"version":(\d+),"updatedAt":(\d+),"settled":(\d+),/.exec(text) ?? [];
  return { version: Number(version ?? 0), updatedAt: Number(updatedAt ?? 0), settled: Number(settled ?? 0) };
}

/** Undefined for a calendar that was deleted. @throws CarillonError BAD_RECORD */
function parse(name: string, text: string): StoredCalendar | undefined {
  try {
    const { entries } = JSON.parse(text) as { entries: string[] | null };
    if (entries === null) return undefined;
    const { version, updatedAt, settled } = header(text);
    return { name, version, updatedAt, settled: settled >= version, entries: readCalendar(entries) };
  } catch (cause) {
    throw new CarillonError('BAD_RECORD', `the calendar ${name} cannot be read`, {
      field: 'calendar',
      given: name,
      todo: 'Set its dates again.',
      cause,
    });
  }
}
