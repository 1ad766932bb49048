import type { CronFieldTexts } from './cron-expression.js';
import {
  type CronField,
  checkStep,
  DAY_OF_MONTH,
  DAY_OF_WEEK,
  fieldValue,
  HOUR,
  MINUTE,
  MONTH,
  readStep,
  SECOND,
} from './cron-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';
import { stableHash } from './stable-hash.js';

const HASHED = /^H(?:\(([0-9A-Z]+)-([0-9A-Z]+)\))?(?:\/([0-9A-Z]+))?$/;
const RANDOM = /^([0-9A-Z]+)?~([0-9A-Z]+)?(?:\/([0-9A-Z]+))?$/;

/**
 * An expression's fields with their seeded items, `H`, `H(0-29)`, `H/15`, `0~30`, put into plain ones. The same seed
 * gives the same values for ever, and fields differ from each other: `H H * * *` is not bound to minutes that equal
 * their hour.
 * @param seed the schedule's identity.
 * @throws CarillonError `INVALID_CRON` without a seed, and for a range or step that the field cannot hold.
 */
export function resolveSeeds(
  texts: CronFieldTexts,
  seed: string | undefined,
  source: CronSource,
): CronFieldTexts {
  const resolve = (field: CronField) => {
    const text = texts[field.name];
    if (!/[H~]/.test(text)) return text;
    // The place in the list counts, so that H,H names two minutes.
    const plain = (item: string, i: number) =>
      isSeeded(item) ? seededItem(field, item, i, seed, source) : item;
    return text.split(',').map(plain).join(',');
  };
  return {
    second: resolve(SECOND),
    minute: resolve(MINUTE),
    hour: resolve(HOUR),
    dayOfMonth: resolve(DAY_OF_MONTH),
    month: resolve(MONTH),
    dayOfWeek: resolve(DAY_OF_WEEK),
  };
}

function isSeeded(item: string): boolean {
  return HASHED.test(item) || RANDOM.test(item);
}

function seededItem(
  field: CronField,
  item: string,
  index: number,
  seed: string | undefined,
  source: CronSource,
) {
  if (seed === undefined) {
    throw refuseCron(
      source,
      `${field.label}: ${item} is chosen by the schedule's identity, and none was given`,
      'pass a seed, or write a plain value',
    );
  }
  const [, first, last, stepText] = HASHED.exec(item) ?? RANDOM.exec(item) ?? [];
  const from = first === undefined ? field.min : fieldValue(field, first, source);
  const to =
    last === undefined
      ? (first === undefined && field.seededMax) || field.max
      : fieldValue(field, last, source);
  if (from > to) {
    throw refuseCron(
      source,
      `${field.label}: the range of ${item} is reversed`,
      'write the smaller value first',
    );
  }
  const hash = stableHash(`${seed}\n${field.name}\n${index}`);
  if (stepText === undefined) return String(from + (hash % (to - from + 1)));
  const step = readStep(field, item, stepText, source);
  checkStep(field, item, from, to - from, step, source);
  const start = from + (hash % step);
  return start + step > to ? String(start) : `${start}-${to}/${step}`;
}
