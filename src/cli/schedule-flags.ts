import type { Command } from 'commander';
import type { JobOptions } from '../client/job-options.js';
import type { ScheduleTemplate } from '../client/schedules-port.js';
import { compact, type ScheduleDefinition } from '../domain/schedule.js';
import { optsArgument, plainDataArgument } from './arguments.js';
import { addExclusionOptions, type ExclusionFlags, toExclusions } from './exclusion-flags.js';
import { addPolicyOptions, type PolicyFlags, toPolicies } from './schedule-policies.js';
import { addTimingOptions, type TimingFlags, toDefinition } from './schedule-timing.js';

/** The flags of a schedule: its definition, and what each run is. */
export interface ScheduleFlags extends TimingFlags, PolicyFlags, ExclusionFlags {
  name?: string;
  data?: string;
  dataFile?: string;
  opts?: string;
  dryRun?: boolean;
  requestId?: string;
}

/** What is said of options that the runs of a schedule have by it. */
const RUNS = { repeat: 'Leave it out: --cron or --every says when.' };

/** Adds the flags of {@link ScheduleFlags} to a command. */
export function addScheduleOptions(command: Command, missed: 'required' | 'optional'): Command {
  return addExclusionOptions(addPolicyOptions(addTimingOptions(command), missed))
    .option('--name <text>', 'the name of each run (default: the schedule’s id)')
    .option('--data <json>', 'the payload of each run (default: {})')
    .option('--data-file <path>', 'the payload from a file; - is standard input')
    .option('--opts <json>', 'BullMQ’s options of each run: attempts, backoff, …')
    .option('--dry-run', 'only show what would be done')
    .option('--request-id <text>', 'names this call: repeated with the same id it has its effect once');
}

/** What the flags name, and nothing else; what it means is checked by the domain. */
export function namedBy(flags: ScheduleFlags): {
  definition: Partial<ScheduleDefinition>;
  template: ScheduleTemplate<unknown, string, JobOptions>;
} {
  return {
    definition: compact({ ...toDefinition(flags), ...toPolicies(flags), ...toExclusions(flags) }),
    template: compact({
      name: flags.name,
      data: plainDataArgument(flags),
      opts: flags.opts === undefined ? undefined : (optsArgument(flags.opts, RUNS) as JobOptions),
    }),
  };
}
