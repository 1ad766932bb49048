import { CarillonError, shortText } from './errors.js';

/**
 * IANA's names without a `/`. ICU knows more of these three-letter words and gives some a meaning of its own (BST is
 * Dhaka, IST is Kolkata, PST observes daylight time), so only these are taken.
 */
const SINGLE_WORDS = byLowerCase(
  (
    'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran ' +
    'Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK ' +
    'Singapore Turkey UCT UTC Universal W-SU WET Zulu'
  ).split(' '),
);

/** What stands in names with a `/` and is not one large letter before small ones. */
const ODD_WORDS = byLowerCase(
  'of au es IN US GMT UTC UCT ACT NSW LHI McMurdo DumontDUrville BajaNorte BajaSur DeNoronha EasterIsland ComodRivadavia'.split(
    ' ',
  ),
);

const NAME = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;

/**
 * Refuses what is no IANA time zone that this Node knows: `local`, an offset, an abbreviation, the empty text.
 * @throws CarillonError `INVALID_TIME_ZONE`, naming the zone that was probably meant.
 */
export function checkTimeZone(tz: unknown, field = 'tz'): string {
  if (typeof tz === 'string' && isTimeZone(tz)) return tz;
  const todo = advice(tz);
  const message = `${field}: ${shortText(tz)} is not the name of a time zone; ${todo}`;
  throw new CarillonError('INVALID_TIME_ZONE', message, { field, given: tz, todo });
}

/** Whether {@link checkTimeZone} takes a text. */
export function isTimeZone(text: string): boolean {
  return NAME.test(text) && isListed(text) && isKnown(text);
}

/** A zone's name in the letters of the zone files: others tell large ones from small ones, we do not. */
export function spelledTimeZone(tz: string): string {
  const lower = tz.toLowerCase();
  if (!tz.includes('/')) return SINGLE_WORDS.get(lower) ?? tz;
  return lower.replace(
    /[a-z]+/g,
    (word) => ODD_WORDS.get(word) ?? `${word.charAt(0).toUpperCase()}${word.slice(1)}`,
  );
}

function byLowerCase(words: readonly string[]): ReadonlyMap<string, string> {
  return new Map(words.map((word) => [word.toLowerCase(), word]));
}

function isListed(tz: string): boolean {
  return tz.includes('/') ? !/^SystemV\//i.test(tz) : SINGLE_WORDS.has(tz.toLowerCase());
}

function isKnown(tz: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: tz });
    return true;
  } catch {
    return false;
  }
}

function advice(tz: unknown): string {
  const general = "write an IANA name such as 'Europe/London', or 'UTC'";
  if (typeof tz !== 'string' || tz === '') return general;
  if (/^(local|system|localtime|default)$/i.test(tz)) {
    return `name the zone, because hosts differ: ${general}`;
  }
  const offset = /^(?:UTC|GMT|Z)?([+-])(\d{1,2})(?::?(\d{2}))?$/i.exec(tz);
  if (offset !== null) {
    const [, sign, hours, minutes = '00'] = offset;
    if (minutes !== '00' || Number(hours) > 12) return general;
    // POSIX's sign, which Etc/ names keep, counts westwards.
    return `write 'Etc/GMT${sign === '+' ? '-' : '+'}${Number(hours)}' for a fixed offset, or a city such as 'Europe/London'`;
  }
  const near = nearestName(tz);
  return near === undefined ? general : `did you mean '${near}'?`;
}

function nearestName(tz: string): string | undefined {
  const wanted = tz.toLowerCase().replace(/[\s-]+/g, '_');
  let best: string | undefined;
  let least = 3;
  for (const name of Intl.supportedValuesOf('timeZone')) {
    const candidate = name.toLowerCase();
    if (candidate.slice(candidate.lastIndexOf('/') + 1) === wanted) return name;
    const distance = editDistance(wanted, candidate, least);
    if (distance < least) {
      best = name;
      least = distance;
    }
  }
  return best;
}

/** How many letters must change to make `a` into `b`, or `limit` if that many or more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(change, (above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    if (Math.min(...row) >= limit) return limit;
  }
  return row[b.length] ?? limit;
}
