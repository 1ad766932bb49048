import { describe, expect, test } from 'vitest';
import {
  hasRecordedOffsets,
  isNewerTzData,
  RecordedOffsets,
  readRecordedZone,
  recordZone,
} from '../../../src/domain/recorded-offsets.js';
import { zoneOffsets } from '../../../src/domain/time-zone-offsets.js';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const DAY = 86_400_000;

describe('the recorded offsets of a zone', () => {
  test.each(['Europe/London', 'America/New_York', 'Asia/Tokyo', 'Africa/Casablanca', 'Australia/Lord_Howe'])(
    '%s answers as it did',
    (tz) => {
      const zone = zoneOffsets(tz);
      const text = JSON.stringify(recordZone('2025c', zone, NOW));
      const recorded = readRecordedZone(text);
      if (recorded === undefined) throw new Error(text);
      expect(text.length).toBeLessThan(1500);
      expect(hasRecordedOffsets(recorded, zone)).toBe(true);
      expect(hasRecordedOffsets(recorded, zoneOffsets('Asia/Kathmandu'))).toBe(false);
      const again = new RecordedOffsets(recorded);
      for (let at = NOW - 700 * DAY; at < NOW + 3600 * DAY; at += DAY / 4) {
        const { offset, start } = again.spanAt(at);
        expect(offset).toBe(zone.spanAt(at).offset);
        if (start > recorded.from) {
          expect(again.spanAt(start).offsetBefore).toBe(zone.spanAt(start - 1).offset);
          expect(again.spanAt(start - 1).offsetAfter).toBe(offset);
        }
      }
    },
  );

  test.each([
    '',
    'null',
    '[]',
    '{"version":"2025c"}',
    '{"version":"2025c","at":1,"from":0,"to":1,"offsets":[]}',
    '{"version":"2025c","at":1,"from":0,"to":1,"offsets":[[1]]}',
    '{"version":7,"at":1,"from":0,"to":1,"offsets":[[1,2]]}',
  ])('%s is none', (text) => {
    expect(readRecordedZone(text)).toBeUndefined();
  });

  test('versions are ordered by year and letter; of others nobody can tell', () => {
    expect(isNewerTzData('2025c', '2025b')).toBe(true);
    expect(isNewerTzData('2026a', '2025z')).toBe(true);
    expect(isNewerTzData('2025b', '2025b')).toBe(false);
    expect(isNewerTzData('2025b', '2025c')).toBe(false);
    expect(isNewerTzData('unknown', '2025c')).toBe(false);
    expect(isNewerTzData('2025c', 'unknown')).toBe(false);
  });
});
