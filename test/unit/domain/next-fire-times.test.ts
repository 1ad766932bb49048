import { expect, test } from 'vitest';
import { nextFireTimes } from '../../../src/domain/next-fire-times.js';
import type { ScheduleDefinition } from '../../../src/domain/schedule.js';

const AFTER = '2026-06-14T12:00:00Z';

function days(definition: Partial<ScheduleDefinition>, count = 4): string[] {
  const times = nextFireTimes({ cron: '0 9 * * *', ...definition }, { after: AFTER, count });
  return times.map((time) => time.toISOString().slice(5, 13));
}

test('excluded dates and ranges are left out, or moved', () => {
  expect(days({ exclude: ['2026-06-16'] })).toEqual(['06-15T09', '06-17T09', '06-18T09', '06-19T09']);
  expect(days({ exclude: [{ from: '2026-06-15', to: '2026-06-17' }] }, 1)).toEqual(['06-18T09']);
  const span = { from: '2026-06-15T08:00:00Z', to: '2026-06-15T10:00:00Z' };
  expect(days({ exclude: [span] }, 1)).toEqual(['06-16T09']);
  const monday = { cron: '0 9 * * 1', exclude: ['2026-06-15'] };
  expect(days({ ...monday, onExcluded: 'next' }, 2)).toEqual(['06-16T09', '06-22T09']);
  // In the schedule's zone: 09:00 in Tokyo is another date in UTC from midnight on.
  expect(days({ cron: '0 0 * * *', tz: 'Asia/Tokyo', exclude: ['2026-06-16'] }, 2)).toEqual([
    '06-14T15',
    '06-16T15',
  ]);
});

test('limit, endDate and exclusions for ever end it', () => {
  expect(days({ limit: 2 }, 9)).toEqual(['06-15T09', '06-16T09']);
  expect(days({ limit: 2, exclude: ['2026-06-15'] }, 9)).toEqual(['06-16T09', '06-17T09']);
  expect(days({ limit: 9 }, 1)).toEqual(['06-15T09']);
  expect(days({ endDate: '2026-06-15T09:00:00Z' })).toEqual(['06-15T09']);
  expect(days({ exclude: [{ from: '2020-01-01', to: '9999-12-31' }] })).toEqual([]);
});

test('a whole definition is taken: what names no time changes none', () => {
  expect(days({ missed: 'all', overlap: 'allow', jitter: '5m', tags: ['x'] }, 1)).toEqual(['06-15T09']);
});

// biome-ignore format: a table
test.each<[string, object, object, string]>([
  ['foo', { foo: 1 }, {}, 'foo 1 is no option of a schedule'],
  ['exclud', { exclud: ['2026-06-16'] }, {}, 'did you mean exclude?; write exclude'],
  ['timezone', { timezone: 'Asia/Tokyo' }, {}, 'timezone "Asia/Tokyo" is no option; write tz'],
  ['overlap', { overlap: 'x' }, {}, 'write one of skip, '],
  ['exclude[0]', { exclude: ['tomorrow'] }, {}, 'is not a date'],
  ['exclude', { exclude: [{ calendar: 'uk' }] }, {}, 'exclude names the calendar uk, which Redis holds; ask queue.schedules.preview, or exclude its dates'],
  ['limit', {}, { limit: 2 }, 'limit is no option of nextFireTimes; write one of after, count, seed'],
  ['cout', {}, { cout: 2 }, 'cout is no option of nextFireTimes; write count'],
  ['count', {}, { count: 0 }, 'count: 0 is out of range; write a whole number from 1 to 10000'],
])('refuses %s: %j %j', (field, over, options, message) => {
  const call = () => nextFireTimes({ cron: '0 9 * * *', ...over }, { after: AFTER, ...options });
  expect(call).toThrow(expect.objectContaining({ field, message: expect.stringContaining(message) }));
});

test('refuses what is no definition', () => {
  for (const given of [null, undefined, [], '0 9 * * *']) {
    expect(() => nextFireTimes(given as never, { after: AFTER })).toThrow('is not an object');
  }
});
