import { formatDuration } from './durations.js';
import {
  DEFAULT_CATCHUP_WINDOW,
  DEFAULT_GRACE,
  DEFAULT_MAX_CATCHUP,
  DEFAULT_MAX_OPEN_RUNS,
  type StoredPolicies,
} from './schedule.js';

/** So many exclusions are named. */
const MOST_EXCLUSIONS = 10;

/** A schedule's policies as sentences, defaults spelled out: what the person on call wants to know at 3 a.m. */
export function policyWords(policies: StoredPolicies): string[] {
  return [
    timesWords(policies),
    ...exclusionWords(policies),
    missedWords(policies),
    overlapWords(policies),
    ...followWords(policies),
    ...(policies.jitter
      ? [
          `Each tick fires up to ${formatDuration(policies.jitter)} after its time, the same on every machine.`,
        ]
      : []),
    ...(policies.limit === undefined ? [] : [`It ends after ${policies.limit} runs.`]),
    ...(policies.endDate === undefined ? [] : [`It ends at ${iso(policies.endDate)}.`]),
    ...(policies.startDate === undefined ? [] : [`No tick comes before ${iso(policies.startDate)}.`]),
    ...(policies.runTimeout === undefined
      ? []
      : [
          `A run that has not ended ${formatDuration(policies.runTimeout)} after it went into its queue counts as ended; the schedule goes on beside it.`,
        ]),
    ...(policies.pauseOnFailure === undefined
      ? []
      : [`It is paused after ${policies.pauseOnFailure} failed runs in a row.`]),
  ];
}

/** What a fail-over may take by the default settings of schedulers that etcd coordinates: 2 TTL + 2 s + poll, ms. */
const FAIL_OVER = 23_000;

/**
 * How late a tick may start at most and still run: its lateness bound, in sentences.
 * @param period the shortest time between two ticks as far as known, ms: no tick is waited for beyond its next one.
 */
export function latenessWords(policies: StoredPolicies, period = policies.every): string {
  const grace = policies.grace ?? DEFAULT_GRACE;
  const window = formatDuration(policies.catchupWindow ?? DEFAULT_CATCHUP_WINDOW);
  // The next tick makes one missed, whatever grace is left of it; under `all` that one runs all the same.
  const served = policies.missed === 'all' ? grace : Math.min(grace, period ?? grace);
  const until = served < grace ? ', when its next one is due,' : '';
  const unserved = `A tick that nobody serves for ${formatDuration(served)}${until}`;
  const bound =
    policies.missed === 'skip'
      ? `${unserved} does not run; behind a backlog it runs until its next one is due.`
      : served < grace
        ? `${unserved} gives way to that one; the newest is caught up, at most ${window} late.`
        : `${unserved} is caught up, at most ${window} late.`;
  if (Math.min(grace, period ?? grace) >= FAIL_OVER) return bound;
  return `${bound} One that falls into a fail-over from scheduler to scheduler, of up to ${formatDuration(FAIL_OVER)}, may be missed.`;
}

function timesWords({ cron, every, tz, gap, fold }: StoredPolicies): string {
  const zone = tz ?? 'UTC';
  if (every !== undefined) return `It fires every ${formatDuration(every)}, counted from its anchor.`;
  const clock = [
    ...(gap === undefined ? [] : [`a time that the clock skips: ${gap}`]),
    ...(fold === undefined ? [] : [`a repeated hour: ${fold}`]),
  ];
  return `It fires at ${(cron ?? []).join(' and ')}, ${zone} time${clock.length > 0 ? ` (${clock.join('; ')})` : ''}.`;
}

function exclusionWords({ exclude, onExcluded }: StoredPolicies): string[] {
  if (exclude === undefined) return [];
  const entries = exclude.map((entry) => {
    if (typeof entry === 'string') return entry;
    if ('calendar' in entry) return `the dates of calendar ${entry.calendar}`;
    const [from, to] = [entry.from, entry.to].map((end) => (typeof end === 'number' ? iso(end) : end));
    return `${from} to ${to}`;
  });
  const shown = entries.slice(0, MOST_EXCLUSIONS);
  const more = entries.length > shown.length ? ` and ${entries.length - shown.length} more` : '';
  const fate =
    onExcluded === 'next' ? 'runs at the same time on the next date that is free' : 'does not exist';
  return [`A tick on ${shown.join(', ')}${more} ${fate}.`];
}

function followWords({ after, onParentFailed, onParentSkipped }: StoredPolicies): string[] {
  if (after === undefined) return [];
  const names = after.map((one) => (typeof one === 'string' ? one : `${one.queue}:${one.scheduleId}`));
  const fate = (policy: 'run' | undefined) => (policy === 'run' ? 'runs all the same' : 'is skipped');
  return [
    `Each tick waits for the run of the same time of ${names.join(', ')}; where that failed it ${fate(onParentFailed)}, where it was skipped it ${fate(onParentSkipped)}.`,
  ];
}

function missedWords(policies: StoredPolicies): string {
  switch (policies.missed) {
    case 'skip':
      return 'Ticks that were missed do not run.';
    case 'latest':
      return 'Of ticks that were missed, the newest one runs.';
    case 'all': {
      const most = policies.maxCatchup ?? DEFAULT_MAX_CATCHUP;
      const otherwise = {
        refuse: 'none of them runs, and that is recorded',
        newest: 'the newest of them run',
        suspend: 'the schedule is suspended',
      }[policies.onTooMany ?? 'refuse'];
      return `All ticks that were missed run in order, one at a time; of more than ${most}, ${otherwise}.`;
    }
  }
}

function overlapWords(policies: StoredPolicies): string {
  const most = policies.maxOpenRuns ?? DEFAULT_MAX_OPEN_RUNS;
  const bound = `At most ${most} runs are open or waiting.`;
  const atOnce = policies.maxConcurrent ?? 1;
  const busy = atOnce === 1 ? 'a run is still open' : `${atOnce} runs are still open`;
  switch (policies.overlap ?? 'skip') {
    case 'skip':
      return `A tick that comes while ${busy} is skipped. ${bound}`;
    case 'bufferOne':
      return `A tick that comes while ${busy} waits, one of them at the most. ${bound}`;
    case 'bufferAll':
      return `A tick that comes while ${busy} waits for its turn. ${bound}`;
    case 'cancelOther':
      return `A tick that comes while ${busy} takes the place of one that no worker has fetched; one that runs is asked to stop if Carillon’s worker has it, a plain worker’s is waited for. ${bound}`;
    case 'allow':
      return policies.maxConcurrent === undefined
        ? `Runs may overlap. ${bound}`
        : `Up to ${policies.maxConcurrent} runs may overlap; further ticks wait. ${bound}`;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
