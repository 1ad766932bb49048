import { type Command, Option } from 'commander';
import type { FollowedSchedule, ScheduleDefinition } from '../domain/schedule.js';
import { durationArgument, integerArgument } from './arguments.js';

/** The flags that say what becomes of a schedule's ticks; words are checked by the domain. */
export interface PolicyFlags {
  missed?: ScheduleDefinition['missed'];
  grace?: string;
  jitter?: string;
  catchupWindow?: string;
  maxCatchup?: string;
  onTooMany?: NonNullable<ScheduleDefinition['onTooMany']>;
  overlap?: NonNullable<ScheduleDefinition['overlap']>;
  maxConcurrent?: string;
  maxOpenRuns?: string;
  runTimeout?: string;
  pauseOnFailure?: string;
  keepRuns?: string;
  after?: string[];
  onParentFailed?: NonNullable<ScheduleDefinition['onParentFailed']>;
  onParentSkipped?: NonNullable<ScheduleDefinition['onParentSkipped']>;
  tag?: string[];
}

/** Adds the flags of {@link PolicyFlags} to a command. */
export function addPolicyOptions(command: Command, missed: 'required' | 'optional'): Command {
  return command
    .addOption(
      new Option(
        '--missed <policy>',
        'what becomes of ticks that nobody served: skip, latest or all',
      ).makeOptionMandatory(missed === 'required'),
    )
    .option('--grace <duration>', 'how late a tick may be and still fire as if on time (default: 30s)')
    .option('--jitter <duration>', 'spread fire times by up to this')
    .option('--catchup-window <duration>', 'latest and all run no tick older than this (default: 1d)')
    .option('--max-catchup <count>', 'all runs at most so many, 1 to 1000 (default: 100)')
    .option('--on-too-many <policy>', 'of more than that: refuse, newest or suspend (default: refuse)')
    .option(
      '--overlap <policy>',
      'a tick while a run is open: skip, bufferOne, bufferAll, cancelOther or allow (default: skip)',
    )
    .option('--max-concurrent <count>', 'so many runs may be open at once, 1 to 64 (default: 1; allow: any)')
    .option('--max-open-runs <count>', 'open and waiting runs together, 1 to 64 (default: 32)')
    .option(
      '--run-timeout <duration>',
      'a run that has not ended after this counts as ended (default: never)',
    )
    .option('--pause-on-failure <count>', 'pause after so many failed runs in a row (default: never)')
    .option('--keep-runs <count>', 'rows of its ledger, 0 to 255 (default: 50)')
    .option(
      '--after <schedule>',
      'each tick follows this one’s run of the same time: an id, or queue:id (needed where the id holds a colon); may be given again',
      collect,
    )
    .option('--on-parent-failed <policy>', 'when that failed: skip or run (default: skip)')
    .option('--on-parent-skipped <policy>', 'when that was skipped: skip or run (default: skip)')
    .option('--tag <word>', 'a word to find it by; may be given again', collect);
}

/** The same as a definition has it. @throws CarillonError INVALID_OPTION, INVALID_DURATION */
export function toPolicies(flags: PolicyFlags): Partial<ScheduleDefinition> {
  const duration = (field: string, text: string | undefined) =>
    text === undefined ? undefined : durationArgument(text, field);
  const count = (field: string, text: string | undefined, min: number, max: number) =>
    text === undefined ? undefined : integerArgument(text, field, min, max);
  return {
    missed: flags.missed,
    grace: duration('grace', flags.grace),
    jitter: duration('jitter', flags.jitter),
    catchupWindow: duration('catchup-window', flags.catchupWindow),
    maxCatchup: count('max-catchup', flags.maxCatchup, 1, 1000),
    onTooMany: flags.onTooMany,
    overlap: flags.overlap,
    maxConcurrent: count('max-concurrent', flags.maxConcurrent, 1, 64),
    maxOpenRuns: count('max-open-runs', flags.maxOpenRuns, 1, 64),
    runTimeout: duration('run-timeout', flags.runTimeout),
    pauseOnFailure: count('pause-on-failure', flags.pauseOnFailure, 1, 255),
    keepRuns: count('keep-runs', flags.keepRuns, 0, 255),
    after: flags.after?.map(followed),
    onParentFailed: flags.onParentFailed,
    onParentSkipped: flags.onParentSkipped,
    tags: flags.tag,
  };
}

/** `nightly` of the same queue, or `etl:nightly` as `schedules describe` writes it: no queue's name holds a colon. */
function followed(text: string): string | FollowedSchedule {
  const colon = text.indexOf(':');
  return colon < 0 ? text : { queue: text.slice(0, colon), scheduleId: text.slice(colon + 1) };
}

function collect(value: string, known: string[] = []): string[] {
  return [...known, value];
}
