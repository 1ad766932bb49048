import type { Command } from 'commander';
import type { ScheduleFilter } from '../client/schedule-filter.js';
import type { RecordState } from '../domain/states.js';

/** The flags that say which schedules are meant. */
export interface FilterFlags {
  tag?: string;
  state?: string;
  text?: string;
}

/** Adds the flags of {@link FilterFlags} to a command. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('--tag <word>', 'those that carry this tag')
    .option('--state <state>', 'those that are scheduled, paused, parked, suspended or ended')
    .option('--text <text>', 'those with this text in id, name, note, expression or zone');
}

/** The same for the SDK, unchecked; undefined when no flag was given. */
export function toFilter({ tag, state, text }: FilterFlags): ScheduleFilter | undefined {
  if (tag === undefined && state === undefined && text === undefined) return undefined;
  return {
    ...(tag === undefined ? {} : { tag }),
    ...(state === undefined ? {} : { state: state as RecordState }),
    ...(text === undefined ? {} : { text }),
  };
}
