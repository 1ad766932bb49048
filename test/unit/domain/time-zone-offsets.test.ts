import { describe, expect, test } from 'vitest';
import { tzDataVersion, YEARLY_RULES_FROM, zoneOffsets } from '../../../src/domain/time-zone-offsets.js';

const HOUR = 3_600_000;

function hoursAt(tz: string, time: string): number {
  return zoneOffsets(tz).spanAt(Date.parse(time)).offset / HOUR;
}

describe('offsets of a zone', () => {
  test('change at the instant that the zone changes', () => {
    const change = Date.parse('2026-03-08T07:00:00Z');
    const zone = zoneOffsets('America/New_York');
    expect(zone.spanAt(change - 1)).toMatchObject({ offset: -5 * HOUR, end: change, offsetAfter: -4 * HOUR });
    expect(zone.spanAt(change)).toMatchObject({
      offset: -4 * HOUR,
      start: change,
      offsetBefore: -5 * HOUR,
      end: Date.parse('2026-11-01T06:00:00Z'),
      offsetAfter: -5 * HOUR,
    });
  });

  test.each([
    ['UTC', '2026-01-01T00:00:00Z', 0],
    ['Asia/Kathmandu', '2026-01-01T00:00:00Z', 5.75],
    ['Pacific/Chatham', '2026-01-01T00:00:00Z', 13.75],
    ['Australia/Lord_Howe', '2026-07-01T00:00:00Z', 10.5],
    ['America/St_Johns', '2026-01-01T00:00:00Z', -3.5],
    ['Pacific/Apia', '2011-12-30T09:59:59Z', -10],
    ['Pacific/Apia', '2011-12-30T10:00:00Z', 14],
    ['Africa/Monrovia', '1971-01-01T00:00:00Z', -(44 * 60 + 30) / 3600],
    // One week of summer time, the shortest since 1970.
    ['America/Noronha', '2000-10-08T01:59:59Z', -2],
    ['America/Noronha', '2000-10-08T02:00:00Z', -1],
    ['America/Noronha', '2000-10-15T00:59:59Z', -1],
    ['America/Noronha', '2000-10-15T01:00:00Z', -2],
    // The shortest to come that are in the data: Ramadan in Gaza.
    ['Asia/Gaza', '2040-10-23T00:00:00Z', 3],
    ['Asia/Gaza', '2040-10-19T00:00:00Z', 2],
    ['Asia/Gaza', '2040-10-28T00:00:00Z', 2],
    ['America/New_York', '9999-07-01T00:00:00Z', -4],
    ['America/New_York', '9999-12-01T00:00:00Z', -5],
  ])('%s at %s is %d hours from UTC', (tz, time, hours) => {
    expect(hoursAt(tz, time)).toBe(hours);
  });

  test('spans join without gaps, whichever is asked for first', () => {
    for (const tz of ['Europe/London', 'Africa/Casablanca', 'Asia/Gaza', 'Pacific/Apia', 'Asia/Tokyo']) {
      const zone = zoneOffsets(tz);
      for (const start of ['2090-01-01T00:00:00Z', '1970-01-01T00:00:00Z', '2010-06-01T00:00:00Z']) {
        let span = zone.spanAt(Date.parse(start));
        for (let i = 0; i < 40; i++) {
          const next = zone.spanAt(span.end);
          expect(next.start).toBeLessThanOrEqual(span.end);
          expect(next.offset).toBe(span.offsetAfter);
          if (next.start === span.end) expect(next.offsetBefore).toBe(span.offset);
          else expect(next.offset).toBe(span.offset);
          span = next;
        }
      }
    }
  });

  test('from 2100 on each zone keeps an offset for two months or for ever, as the coarser search needs', () => {
    for (const tz of Intl.supportedValuesOf('timeZone')) {
      const plain = new Intl.DateTimeFormat('en-US', { timeZone: tz, timeZoneName: 'longOffset' });
      const changes: number[] = [];
      let last = plain.format(YEARLY_RULES_FROM).slice(-9);
      for (let day = 1; day < 3 * 366; day++) {
        const offset = plain.format(YEARLY_RULES_FROM + day * 24 * HOUR).slice(-9);
        if (offset !== last) changes.push(day);
        last = offset;
      }
      for (const [i, day] of changes.entries()) {
        if (i > 0) expect(day - (changes[i - 1] ?? 0), tz).toBeGreaterThan(60);
      }
    }
  });

  test('the version of the data is known', () => {
    expect(tzDataVersion).toMatch(/^20\d\d[a-z]$/);
  });
});
