import { type Duration, parseDuration } from '../domain/durations.js';
import type { Durability } from '../redis/durability.js';
import { checkInteger, checkObject } from './check.js';
import { rejectUnknown } from './unknown-options.js';

/** How many replicas must have a change before its call resolves. */
export interface DurabilityOptions {
  /** 0 asks for none: a call's own way out of the queue's setting. */
  replicas: number;
  /** How long they may take: ms, or a text such as `'500ms'`. Defaults to `'1s'`. */
  timeout?: Duration;
}

const MOST_REPLICAS = 100;
const LONGEST = 60_000;

/** That of one call, where it asks for one. @throws CarillonError INVALID_OPTION, INVALID_DURATION */
export function durabilityOf(asked: unknown, longest = LONGEST): Durability | undefined {
  return asked === undefined ? undefined : checkDurability('durability', asked, longest);
}

/** @throws CarillonError INVALID_OPTION, INVALID_DURATION */
export function checkDurability(field: string, value: unknown, longest = LONGEST): Durability {
  const given = checkObject(field, value);
  rejectUnknown(given, ['replicas', 'timeout'], `${field}.`);
  return Object.freeze({
    replicas: checkInteger(`${field}.replicas`, given.replicas, 0, MOST_REPLICAS),
    // WAIT takes 0 for "for ever".
    timeout: parseDuration((given.timeout ?? '1s') as Duration, {
      field: `${field}.timeout`,
      min: 1,
      max: longest,
    }),
  });
}
