import type { ScheduleDefinition } from './schedule.js';

/** A schedule read from another scheduler's own form. */
export interface ImportedSchedule {
  readonly kind: 'schedule';
  /** The line that it begins on, counted from 1. */
  readonly line: number;
  readonly id: string;
  readonly definition: ScheduleDefinition;
  readonly template: {
    readonly name: string;
    readonly data: unknown;
    readonly opts?: Record<string, unknown>;
  };
  /** The other scheduler would not run it either, for now. */
  readonly paused: boolean;
  /** What it says and Carillon does not do, one sentence each. */
  readonly notTranslated: readonly string[];
  /** What its author may not expect of the result. */
  readonly warnings: readonly string[];
}

/** What cannot become a schedule, or would not run where it comes from. */
export interface RefusedImport {
  readonly kind: 'refused';
  readonly line: number;
  /** As much of it as tells it from others. */
  readonly text: string;
  readonly reason: string;
  /** Schedules that may be what earlier imports made of it: they are not gone from where it comes from. */
  readonly ids?: readonly string[];
}

export type Imported = ImportedSchedule | RefusedImport;
