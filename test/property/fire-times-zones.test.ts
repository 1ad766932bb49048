import { describe, expect, test } from 'vitest';
import { seededRandom } from './seeded-random.js';
import { offsetChanges } from './wall-clock-matcher.js';
import { compareStretch, ODD_ZONES } from './zone-stretch.js';

/**
 * Our fire times against a matcher that walks UTC minutes: three days around each change of offset from 2020 to 2035
 * and 200 random days, in each zone. `CARILLON_ALL_ZONES=1` takes all zones (about fifteen minutes), else a sample.
 */
const DAY = 86_400_000;
const FROM = Date.UTC(2020, 0, 1);
const TO = Date.UTC(2036, 0, 1);

const zones = Intl.supportedValuesOf('timeZone');
const random = seededRandom(20_260_101);
const chosen =
  process.env.CARILLON_ALL_ZONES === '1'
    ? zones
    : [...new Set([...ODD_ZONES, ...Array.from({ length: 7 }, () => random.pick(zones))])];

describe('fire times agree with a walk over the minutes', () => {
  test.each(chosen)(
    '%s',
    (tz) => {
      let seen = 0;
      const compare = (from: number, to: number) => {
        const comparison = compareStretch(tz, from, to, random);
        expect(comparison.wrong).toEqual([]);
        seen += comparison.seen;
      };
      for (const change of offsetChanges(tz, FROM, TO)) {
        const middle = Math.floor(change / 60_000) * 60_000;
        compare(middle - 1.5 * DAY, middle + 1.5 * DAY);
      }
      for (let i = 0; i < 200; i++) {
        const day = FROM + random.below((TO - FROM) / DAY) * DAY;
        compare(day, day + DAY);
      }
      expect(seen).toBeGreaterThan(1_000);
    },
    120_000,
  );
});

test('the sample has changes of offset in it, and the walk finds them', () => {
  expect(offsetChanges('America/New_York', FROM, TO)).toHaveLength(32);
  expect(offsetChanges('Africa/Casablanca', FROM, TO)).toHaveLength(34);
  expect(offsetChanges('Asia/Tokyo', FROM, TO)).toEqual([]);
  expect(new Date(offsetChanges('Australia/Lord_Howe', FROM, TO)[0] ?? 0).toISOString()).toBe(
    '2020-04-04T15:00:00.000Z',
  );
});
