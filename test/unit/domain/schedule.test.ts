import { describe, expect, test } from 'vitest';
import { checkSchedule } from '../../../src/domain/check-schedule.js';
import { isCarillonError } from '../../../src/domain/errors.js';
import { compileStored, type ScheduleDefinition, timingText } from '../../../src/domain/schedule.js';

const SEED = 'q:s';
const T0 = Date.parse('2027-01-15T08:00:00Z');

function check(definition: unknown) {
  return checkSchedule(definition as ScheduleDefinition, SEED);
}

function errorOf(definition: unknown) {
  try {
    check(definition);
  } catch (error) {
    if (isCarillonError(error)) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

const daily = { cron: '30 2 * * *', missed: 'skip' };

describe('bad input', () => {
  // biome-ignore format: a table
  test.each<[string, unknown, string, string]>([
    ['nothing', undefined, 'INVALID_OPTION', 'definition'],
    ['null', null, 'INVALID_OPTION', 'definition'],
    ['a text', '30 2 * * *', 'INVALID_OPTION', 'definition'],
    ['a list', [daily], 'INVALID_OPTION', 'definition'],
    ['no times', { missed: 'skip' }, 'INVALID_OPTION', 'cron'],
    ['two kinds of times', { ...daily, every: 1000 }, 'INVALID_OPTION', 'cron'],
    ['a bad expression', { ...daily, cron: '61 * * * *' }, 'INVALID_CRON', 'cron'],
    ['an expression that is no text', { ...daily, cron: 5 }, 'INVALID_CRON', 'cron'],
    ['one bad of several', { crons: ['@daily', 'x'], missed: 'skip' }, 'INVALID_CRON', 'crons[1]'],
    ['an empty list', { crons: [], missed: 'skip' }, 'INVALID_OPTION', 'crons'],
    ['a bad zone', { ...daily, tz: 'Mars/Olympus' }, 'INVALID_TIME_ZONE', 'tz'],
    ['a zone that is no text', { ...daily, tz: 2 }, 'INVALID_TIME_ZONE', 'tz'],
    ['every 0', { every: 0, missed: 'skip' }, 'INVALID_DURATION', 'every'],
    ['every NaN', { every: Number.NaN, missed: 'skip' }, 'INVALID_DURATION', 'every'],
    ['every as a number in a text', { every: '1000', missed: 'skip' }, 'INVALID_DURATION', 'every'],
    ['a phase of every or more', { every: 1000, phase: 1000, missed: 'skip' }, 'INVALID_OPTION', 'phase'],
    ['an anchor beside cron', { ...daily, anchor: 0 }, 'INVALID_OPTION', 'anchor'],
    ['an anchor without offset', { every: 1, anchor: '2027-01-01T00:00', missed: 'skip' }, 'INVALID_OPTION', 'anchor'],
    ['a start that is no time', { ...daily, startDate: 'soon' }, 'INVALID_OPTION', 'startDate'],
    ['an end before the start', { ...daily, startDate: 2000, endDate: 1000 }, 'INVALID_OPTION', 'endDate'],
    ['limit 0', { ...daily, limit: 0 }, 'INVALID_OPTION', 'limit'],
    ['limit 1.5', { ...daily, limit: 1.5 }, 'INVALID_OPTION', 'limit'],
    ['a limit that no record counts', { ...daily, limit: 2 ** 32 }, 'INVALID_OPTION', 'limit'],
    ['a bad gap', { ...daily, gap: 'no' }, 'INVALID_OPTION', 'gap'],
    ['a bad fold', { ...daily, fold: 'twice' }, 'INVALID_OPTION', 'fold'],
    ['no missed', { cron: '30 2 * * *' }, 'INVALID_OPTION', 'missed'],
    ['an unknown missed', { ...daily, missed: 'run' }, 'INVALID_OPTION', 'missed'],
    ['missed in a list', { ...daily, missed: ['skip'] }, 'INVALID_OPTION', 'missed'],
    ['missed by a name of every object', { ...daily, missed: 'constructor' }, 'INVALID_OPTION', 'missed'],
    ['a negative grace', { ...daily, grace: -1 }, 'INVALID_DURATION', 'grace'],
    ['a grace that no record holds', { ...daily, grace: '50d' }, 'INVALID_DURATION', 'grace'],
    ['null for a duration', { ...daily, grace: null }, 'INVALID_DURATION', 'grace'],
    ['jitter of a fraction', { ...daily, jitter: 0.5 }, 'INVALID_DURATION', 'jitter'],
    ['jitter of years', { ...daily, jitter: '32d' }, 'INVALID_DURATION', 'jitter'],
    ['a window that is no duration', { ...daily, catchupWindow: 'day' }, 'INVALID_DURATION', 'catchupWindow'],
    ['an unknown overlap', { ...daily, overlap: 'wait' }, 'INVALID_OPTION', 'overlap'],
    ['overlap by a name of every object', { ...daily, overlap: 'constructor' }, 'INVALID_OPTION', 'overlap'],
    ['no run at once', { ...daily, maxConcurrent: 0 }, 'INVALID_OPTION', 'maxConcurrent'],
    ['more at once than a record holds', { ...daily, maxConcurrent: 65, maxOpenRuns: 64 }, 'INVALID_OPTION', 'maxConcurrent'],
    ['more at once than may be open', { ...daily, maxConcurrent: 33 }, 'INVALID_OPTION', 'maxConcurrent'],
    ['more at once than is said to be open', { ...daily, maxConcurrent: 3, maxOpenRuns: 2 }, 'INVALID_OPTION', 'maxConcurrent'],
    ['no open run', { ...daily, maxOpenRuns: 0 }, 'INVALID_OPTION', 'maxOpenRuns'],
    ['65 open runs', { ...daily, maxOpenRuns: 65 }, 'INVALID_OPTION', 'maxOpenRuns'],
    ['open runs as a text', { ...daily, maxOpenRuns: '8' }, 'INVALID_OPTION', 'maxOpenRuns'],
    ['a run that may take no time', { ...daily, runTimeout: 0 }, 'INVALID_DURATION', 'runTimeout'],
    ['a run time-out below a second', { ...daily, runTimeout: '999ms' }, 'INVALID_DURATION', 'runTimeout'],
    ['a run time-out that no record holds', { ...daily, runTimeout: '50d' }, 'INVALID_DURATION', 'runTimeout'],
    ['no failure at all', { ...daily, pauseOnFailure: 0 }, 'INVALID_OPTION', 'pauseOnFailure'],
    ['256 failures', { ...daily, pauseOnFailure: 256 }, 'INVALID_OPTION', 'pauseOnFailure'],
    ['a negative ledger', { ...daily, keepRuns: -1 }, 'INVALID_OPTION', 'keepRuns'],
    ['a long ledger', { ...daily, keepRuns: 256 }, 'INVALID_OPTION', 'keepRuns'],
    ['no catch-up run', { ...daily, missed: 'all', maxCatchup: 0 }, 'INVALID_OPTION', 'maxCatchup'],
    ['more catch-up runs than may wait', { ...daily, missed: 'all', maxCatchup: 1001 }, 'INVALID_OPTION', 'maxCatchup'],
    ['an unknown onTooMany', { ...daily, missed: 'all', onTooMany: 'oldest' }, 'INVALID_OPTION', 'onTooMany'],
    ['tags as a text', { ...daily, tags: 'billing' }, 'INVALID_OPTION', 'tags'],
    ['an empty tag', { ...daily, tags: [''] }, 'INVALID_OPTION', 'tags'],
    ['half a surrogate pair', { ...daily, tags: ['\ud800'] }, 'INVALID_OPTION', 'tags'],
    ['a long tag', { ...daily, tags: ['x'.repeat(101)] }, 'INVALID_OPTION', 'tags'],
    ['many tags', { ...daily, tags: Array.from({ length: 33 }, (_, i) => `t${i}`) }, 'INVALID_OPTION', 'tags'],
  ])('%s is refused by name, with what to do', (_what, definition, code, field) => {
    const error = errorOf(definition);
    expect(error).toMatchObject({ code, field });
    expect(error.todo).toBeTruthy();
    expect(error.message).not.toMatch(/undefined|\[object/);
  });

  test.each([
    ['misssed', 'missed'],
    ['catchUpWindow', 'catchupWindow'],
    ['tag', 'tags'],
    ['timezone', 'tz'],
    ['interval', 'every'],
    ['start', 'startDate'],
  ])('an unknown option %s is told to be %s', (given, meant) => {
    const error = errorOf({ ...daily, [given]: '1' });
    expect(error).toMatchObject({ code: 'INVALID_OPTION', field: given });
    expect(error.todo).toContain(meant);
  });

  test.each(['paused', 'enabled', 'suspend', 'state'])('%s is told how a schedule is paused', (given) => {
    const error = errorOf({ ...daily, [given]: true });
    expect(error).toMatchObject({ code: 'INVALID_OPTION', field: given });
    expect(error.message).toContain('pause()');
    expect(error.message).toContain('carillon schedules pause');
    expect(error.message).not.toContain('did you mean');
  });

  test.each(['name', 'data', 'opts', 'attempts'])('%s is told to be of the template', (given) => {
    const error = errorOf({ ...daily, [given]: 5 });
    expect(error).toMatchObject({ code: 'INVALID_OPTION', field: given });
    expect(error.message).toContain('template');
    expect(error.message).not.toContain('did you mean');
  });

  test('an unknown option like no other is told all there are', () => {
    expect(errorOf({ ...daily, frequency: 1 }).todo).toContain('cron, crons, pattern, every');
  });

  test('an option that is undefined is not there', () => {
    expect(check({ ...daily, tz: undefined, whatever: undefined })).toEqual(check(daily));
  });
});

describe('the stored form', () => {
  test('holds ms, lists, and no defaults', () => {
    const given = {
      crons: ['30 2 * * *', '@hourly'],
      tz: 'Europe/London',
      gap: 'edge',
      fold: 'last',
      startDate: new Date(T0),
      endDate: '2027-02-01T00:00:00+01:00',
      limit: 5,
      missed: 'latest',
      grace: '1m',
      jitter: '5m',
      catchupWindow: '12h',
      maxCatchup: 7,
      onTooMany: 'newest',
      overlap: 'allow',
      maxConcurrent: 2,
      maxOpenRuns: 9,
      runTimeout: '2h',
      pauseOnFailure: 3,
      keepRuns: 0,
      tags: ['b', 'a', 'b'],
    };
    expect(check(given)).toEqual({
      cron: ['30 2 * * *', '@hourly'],
      tz: 'Europe/London',
      gap: 'edge',
      fold: 'last',
      startDate: T0,
      endDate: Date.parse('2027-01-31T23:00:00Z'),
      limit: 5,
      missed: 'latest',
      grace: 60_000,
      jitter: 300_000,
      catchupWindow: 43_200_000,
      maxCatchup: 7,
      onTooMany: 'newest',
      overlap: 'allow',
      maxConcurrent: 2,
      maxOpenRuns: 9,
      runTimeout: 7_200_000,
      pauseOnFailure: 3,
      keepRuns: 0,
      tags: ['a', 'b'],
    });
    const defaults = { tz: 'UTC', gap: 'shift', fold: 'first', jitter: 0, tags: [] };
    const policies = { overlap: 'skip', onTooMany: 'refuse' };
    expect(check({ ...daily, ...defaults, ...policies })).toEqual({ cron: ['30 2 * * *'], missed: 'skip' });
    expect(check({ every: '1h', phase: 0, missed: 'skip' })).toEqual({ every: 3_600_000, missed: 'skip' });
  });

  test.each([
    ['Forbid', 'skip'],
    ['Replace', 'cancelOther'],
    ['Allow', 'allow'],
    ['Skip', 'skip'],
    ['BufferOne', 'bufferOne'],
    ['BufferAll', 'bufferAll'],
    ['CancelOther', 'cancelOther'],
    ['TerminateOther', 'cancelOther'],
    ['AllowAll', 'allow'],
    ['SKIP', 'skip'],
    ['BUFFER_ONE', 'bufferOne'],
    ['BUFFER_ALL', 'bufferAll'],
    ['CANCEL_OTHER', 'cancelOther'],
    ['TERMINATE_OTHER', 'cancelOther'],
    ['ALLOW_ALL', 'allow'],
  ])('overlap %s of another system is %s', (theirs, ours) => {
    expect(check({ ...daily, overlap: theirs })).toEqual(check({ ...daily, overlap: ours }));
  });

  test('an overlap that nobody knows is refused with all names', () => {
    expect(() => check({ ...daily, overlap: 'buffer_one' })).toThrow(
      /write one of skip, .*allow \(taken too: Forbid, .*TerminateOther.*ALLOW_ALL\)$/,
    );
  });

  // biome-ignore format: a table
  test.each<[string, object, object]>([
    ['durations', { every: '15m' }, { every: 900_000 }],
    ['durations of two parts', { every: '1h30m' }, { every: '90m' }],
    ['pattern and cron', { pattern: '0 9 * * 1' }, { cron: '0 9 * * 1' }],
    ['crons of one', { crons: ['0 9 * * 1'] }, { cron: '0 9 * * 1' }],
    ['the order of options', { tz: 'Asia/Tokyo', cron: '@daily' }, { cron: '@daily', tz: 'Asia/Tokyo' }],
    ['the order of tags', { cron: '@daily', tags: ['b', 'a'] }, { cron: '@daily', tags: ['a', 'b', 'a'] }],
    ['instants', { cron: '@daily', startDate: '2027-01-15T08:00:00Z' }, { cron: '@daily', startDate: T0 }],
    ['instants by offset', { every: 7, anchor: '2027-01-15T10:00:00+02:00' }, { every: 7, anchor: new Date(T0) }],
  ])('is one text, whatever the way of writing: %s', (_what, one, other) => {
    const text = (timing: object) => JSON.stringify(check({ ...timing, missed: 'skip' }));
    expect(text(one)).toBe(text(other));
  });

  test('compiles to the times of the definition', () => {
    const policies = check({ cron: '30 2 * * *', tz: 'Europe/London', missed: 'skip' });
    expect(compileStored(policies, SEED, T0).next(T0)).toBe(Date.parse('2027-01-16T02:30:00Z'));
    expect(compileStored(check({ every: '1h', missed: 'skip' }), SEED, T0 + 7).next(T0 + 7)).toBe(
      T0 + 7 + 3_600_000,
    );
  });

  test('H is the identity’s own, and the same wherever it is asked (B26)', () => {
    const policies = check({ cron: 'H H * * *', missed: 'skip' });
    const first = (seed: string) => compileStored(policies, seed, T0).next(T0);
    expect(first('q:job-42')).toBe(first('q:job-42'));
    const all = new Set(Array.from({ length: 20 }, (_, i) => first(`q:job-${i}`)));
    expect(all.size).toBeGreaterThan(15);
  });
});

describe('the text of the times', () => {
  const text = (definition: object) => timingText(check({ missed: 'skip', ...definition }), SEED);

  // biome-ignore format: a table
  test.each<[string, object, object]>([
    ['names and numbers', { cron: '0 9 * * MON' }, { cron: '00 09 * * 1' }],
    ['nicknames', { cron: '@daily' }, { cron: '0 0 * * *' }],
    ['the order of expressions', { crons: ['@daily', '@hourly'] }, { crons: ['@hourly', '@daily'] }],
    ['policies', { cron: '@daily' }, { cron: '@daily', missed: 'latest', grace: 5, catchupWindow: 9, tags: ['x'] }],
    ['what happens to runs', { cron: '@daily' }, { cron: '@daily', overlap: 'allow', maxOpenRuns: 3, runTimeout: '1h', pauseOnFailure: 2, keepRuns: 9 }],
    ['a gap policy that has no effect', { cron: '0 * * * *', gap: 'edge' }, { cron: '0 * * * *' }],
  ])('is equal in spite of %s', (_what, one, other) => {
    expect(text(one)).toBe(text(other));
  });

  test('differs when any tick or fire time does', () => {
    const all = [
      { cron: '@daily' },
      { cron: '@daily', tz: 'Europe/London' },
      { cron: '@daily', jitter: '5m' },
      { cron: '@daily', limit: 3 },
      { cron: '@daily', endDate: T0 },
      { cron: '@daily', startDate: T0 },
      { every: '1d' },
      { every: '1d', anchor: T0 },
      { every: '1d', phase: '1h' },
      { cron: 'H 0 * * *' },
    ].map(text);
    expect(new Set(all).size).toBe(all.length);
    const atOnce = { ...check({ every: '1d', missed: 'skip' }), startsAtOnce: true as const };
    expect(all).not.toContain(timingText(atOnce, SEED));
    expect(timingText(check({ cron: 'H 0 * * *', missed: 'skip' }), 'q:other')).not.toBe(all.at(-1));
  });
});
