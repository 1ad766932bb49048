import type { Command } from 'commander';
import type { CalendarSet } from '../domain/calendar.js';
import { compileExclusions, NO_CALENDARS } from '../domain/exclusions.js';
import {
  calendarsOf,
  checkExclude,
  checkOnExcluded,
  type Exclusion,
  type OnExcluded,
} from '../domain/exclusions-definition.js';
import { withExclusions } from '../domain/exclusions-timing.js';
import type { CompiledTiming } from '../domain/fire-times.js';
import { withAdmin } from './connect.js';
import type { Settings } from './settings.js';

/** The flags that say when a schedule does not fire. */
export interface ExclusionFlags {
  exclude?: string[];
  /** Unchecked. */
  onExcluded?: OnExcluded;
}

/** Adds the flags of {@link ExclusionFlags} to a command. */
export function addExclusionOptions(command: Command): Command {
  return command
    .option(
      '--exclude <what>',
      'no tick on a date, on from..to (dates or instants), or on calendar:<name>; may be given again',
      (value, known) => [...((known as string[] | undefined) ?? []), value],
    )
    .option('--on-excluded <policy>', 'an excluded tick: skip or next (default: skip)');
}

/** The same as a definition has it, unchecked. */
export function toExclusions({ exclude, onExcluded }: ExclusionFlags): {
  exclude?: Exclusion[];
  onExcluded?: OnExcluded;
} {
  return {
    ...(exclude === undefined ? {} : { exclude: exclude.map(toExclusion) }),
    ...(onExcluded === undefined ? {} : { onExcluded }),
  };
}

function toExclusion(text: string): Exclusion {
  if (text.startsWith('calendar:')) return { calendar: text.slice('calendar:'.length) };
  const [from = '', to, ...more] = text.split('..');
  return to === undefined || more.length > 0 ? text : { from, to };
}

/** A timing without what the flags exclude; Redis is asked only where they name a calendar. */
export async function excludeByFlags(
  timing: CompiledTiming,
  flags: ExclusionFlags,
  settings: Settings,
): Promise<CompiledTiming> {
  const given = toExclusions(flags);
  const exclude = checkExclude(given.exclude);
  const onExcluded = checkOnExcluded(given.onExcluded, exclude);
  if (exclude === undefined) return timing;
  const names = calendarsOf(exclude);
  const calendars = names.length === 0 ? NO_CALENDARS : await readCalendars(settings, names);
  return withExclusions(timing, compileExclusions(exclude, timing.tz, calendars), onExcluded);
}

/** @throws CarillonError NOT_FOUND */
function readCalendars(settings: Settings, names: readonly string[]): Promise<CalendarSet> {
  return withAdmin(settings, async (admin) => {
    const calendars = await Promise.all(names.map((name) => admin.calendars.get(name)));
    return new Map(calendars.map((calendar) => [calendar.name, calendar]));
  });
}
