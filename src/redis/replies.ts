import { CarillonError } from '../domain/errors.js';
import type { Reply } from './script-runner.js';

/** Typed reading of a script's reply; anything of another shape is a fault of ours, said at once. */
export function asNumber(value: Reply | undefined): number {
  if (typeof value === 'number') return value;
  if (Buffer.isBuffer(value)) {
    const parsed = Number(value.toString());
    if (Number.isFinite(parsed)) return parsed;
  }
  throw wrongShape('a number', value);
}

export function asText(value: Reply | undefined): string {
  return asBytes(value).toString('utf8');
}

export function asBytes(value: Reply | undefined): Buffer {
  if (Buffer.isBuffer(value)) return value;
  throw wrongShape('a string', value);
}

export function asList(value: Reply | undefined): Reply[] {
  if (Array.isArray(value)) return value;
  throw wrongShape('a list', value);
}

function wrongShape(wanted: string, value: unknown): CarillonError {
  return new CarillonError('BAD_SCRIPT', `a script answered something else than ${wanted}`, { given: value });
}
