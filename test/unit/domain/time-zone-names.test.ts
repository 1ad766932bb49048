import { describe, expect, test } from 'vitest';
import { isTimeZone, spelledTimeZone } from '../../../src/domain/time-zone-names.js';

/** Older names, which Intl does not list. */
const LINKS = (
  'US/Eastern US/East-Indiana Australia/ACT Australia/NSW Australia/LHI Mexico/BajaNorte Mexico/BajaSur Brazil/DeNoronha ' +
  'Chile/EasterIsland America/Knox_IN America/Argentina/ComodRivadavia Etc/GMT+12 Etc/GMT0 Etc/UTC Etc/UCT Etc/Greenwich ' +
  'GB-Eire NZ-CHAT W-SU EST5EDT Cuba UTC GMT+0'
).split(' ');

describe('the spelling of a zone', () => {
  test('is that of the zone files, however it is written', () => {
    for (const name of [...Intl.supportedValuesOf('timeZone'), ...LINKS]) {
      expect(isTimeZone(name)).toBe(true);
      for (const written of [name, name.toLowerCase(), name.toUpperCase()]) {
        expect(spelledTimeZone(written)).toBe(name);
      }
    }
  });
});
