import { expect, test } from 'vitest';
import { compareWithBullmq } from '../../../../src/client/compare-with-bullmq.js';
import { compileSchedule } from '../../../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../../../src/domain/fire-times-definition.js';

function compare(timing: TimingDefinition & { cron: string }): string {
  try {
    compareWithBullmq(compileSchedule(timing), timing.cron, Date.UTC(2026, 10, 30));
    return 'same';
  } catch (error) {
    return (error as Error).message;
  }
}

test.each<[string, string, TimingDefinition?]>([
  ['30 9 * * *', 'America/New_York'],
  ['30 2 * * *', 'Asia/Tokyo'],
  ['30 2 * * *', 'UTC', { gap: 'skip', fold: 'both' }],
  ['*/5 * * * *', 'Europe/London'],
  ['*/10 * * * * *', 'Europe/London'],
  ['30 1 * * *', 'Europe/London', { endDate: '2027-03-20T00:00:00Z', fold: 'both' }],
])('%s in %s fires at the same times', (cron, tz, more) => {
  expect(compare({ cron, tz, ...more })).toBe('same');
});

test.each<[string, string, TimingDefinition, string]>([
  ['30 2 25-31 10 *', 'Antarctica/Troll', {}, '2027-10-31T02:30:00.000Z instead of 2028-10-25T00:30:00.000Z'],
  ['0 */2 * * *', 'America/New_York', {}, '2027-03-14T07:00:00.000Z'],
  ['30 1 * * *', 'Europe/London', { fold: 'both' }, 'instead of 2027-10-31T01:30:00.000Z'],
  ['30 1 * * *', 'Europe/London', { fold: 'last' }, '2027-10-31T00:30:00.000Z'],
  ['30 1 * * *', 'Europe/London', { gap: 'skip' }, '2027-03-28T01:30:00.000Z'],
  ['* * 1 * * *', 'Europe/London', { gap: 'skip', fold: 'both' }, '2027-'],
])('%s in %s with %j does not, at the changes of its clocks', (cron, tz, more, times) => {
  expect(compare({ cron, tz, ...more })).toContain(`BullMQ would fire ${cron} in ${tz} at other times: `);
  expect(compare({ cron, tz, ...more })).toContain(times);
});
