import { localSpans } from './exclusions-spans.js';
import { zonedText } from './fire-times-explain.js';
import { zoneOffsets } from './time-zone-offsets.js';

/**
 * What says the same as a year field: `startDate: '2027-01-01T00:00:00-05:00', endDate: …`, by the clock of a zone, or
 * in words where it takes more than one span.
 * @param year `2027` or `2027-2030`.
 * @throws CarillonError INVALID_TIME_ZONE
 */
export function yearDates(year: string, tz = 'UTC'): string {
  const [, first = '', last = first] = /^(\d{4})(?:-(\d{4}))?$/.exec(year) ?? [];
  const zone = zoneOffsets(tz);
  const [start, end] = [Number(first), Number(last) + 1].map((y) => Date.UTC(y, 0, 1)) as [number, number];
  const spans = first === '' ? [] : localSpans(zone, start, end);
  const [opening, closing] = [spans[0], spans.at(-1)];
  if (opening === undefined || closing === undefined) {
    return 'startDate and endDate; one schedule for each span of years';
  }
  const text = (at: number) => zonedText(zone, at).replace('+00:00', 'Z');
  return `startDate: '${text(opening.start)}', endDate: '${text(closing.end - 1000)}'`;
}
