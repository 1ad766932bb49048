import {
  type CalendarDate,
  type CalendarEntry,
  checkCalendarName,
  readCalendar,
} from '../domain/calendar.js';
import { CarillonError } from '../domain/errors.js';
import { type CalendarStore, notFound, type StoredCalendar } from '../redis/calendar-store.js';
import { type RequestOptions, requestOfCall } from './request-ids.js';

/** A stored calendar. */
export interface CalendarInfo {
  name: string;
  /** Rises by one with each change of its dates. */
  version: number;
  /** When they were last changed, ms. */
  updatedAt: number;
  /** In order of date. */
  entries: readonly CalendarEntry[];
}

export interface CalendarChange {
  name: string;
  version: number;
  /** False when its dates were these already. */
  changed: boolean;
  /** Schedules whose next ticks are computed again. */
  schedules: number;
}

/** Identities named in an error. */
const MOST_NAMED = 3;

/** The calendars of a namespace: named lists of dates that schedules leave out, by `exclude: [{ calendar }]`. */
export class Calendars {
  constructor(private readonly store: CalendarStore) {}

  /**
   * Stores a calendar, or replaces its dates. Schedules that name it have their next ticks computed again; a tick
   * whose time has come stays, and none is made up for.
   * @param dates a text of one date a line, as a file has it, or a list; see `readCalendar`.
   * @throws CarillonError INVALID_ID, INVALID_OPTION
   */
  async set(
    name: string,
    dates: string | readonly CalendarDate[],
    options: RequestOptions = {},
  ): Promise<CalendarChange> {
    checkCalendarName(name);
    const requestId = requestOfCall(options);
    const entries = readCalendar(dates);
    const { version, changed } = await this.store.set(name, entries, requestId);
    return { name, version, changed, schedules: await this.store.settleIfNeeded(name) };
  }

  /** @throws CarillonError NOT_FOUND, INVALID_ID */
  async get(name: string): Promise<CalendarInfo> {
    const calendar = await this.store.get(checkCalendarName(name));
    if (calendar === undefined) throw notFound(name);
    return infoOf(calendar);
  }

  /** All of them, by name. */
  async list(): Promise<CalendarInfo[]> {
    const all: CalendarInfo[] = [];
    for await (const calendar of this.store.list()) all.push(infoOf(calendar));
    return all.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Deletes a calendar that no schedule names.
   * @param options.force deletes it all the same: the schedules that name it are suspended when their next tick is
   *   computed, and say so.
   * @throws CarillonError NOT_FOUND, CONFLICT when schedules name it
   */
  async delete(name: string, options: RequestOptions & { force?: boolean } = {}): Promise<CalendarChange> {
    checkCalendarName(name);
    const requestId = requestOfCall(options, [], ['force']);
    if (!(await this.store.exists(name))) throw notFound(name);
    if (options.force !== true) await this.#refuseIfUsed(name);
    const { version, changed } = await this.store.delete(name, requestId);
    return { name, version, changed, schedules: await this.store.settleIfNeeded(name) };
  }

  async #refuseIfUsed(name: string): Promise<void> {
    const users = new Set<string>();
    for await (const identities of this.store.users(name))
      for (const identity of identities) users.add(identity);
    if (users.size === 0) return;
    const named = [...users].sort().slice(0, MOST_NAMED).join(', ');
    const more = users.size > MOST_NAMED ? ` and ${users.size - MOST_NAMED} more` : '';
    throw new CarillonError('CONFLICT', `the calendar ${name} is named by ${named}${more}`, {
      field: 'calendar',
      given: name,
      todo: 'Take it out of their exclude first; or force it, and they are suspended.',
    });
  }
}

function infoOf({ name, version, updatedAt, entries }: StoredCalendar): CalendarInfo {
  return { name, version, updatedAt, entries };
}
