import { CarillonError, type ErrorCode } from '../domain/errors.js';
import type { Logger } from '../support/logger.js';

/** Refuses a value: the one way in which options are turned down. */
export function refuse(
  field: string,
  given: unknown,
  problem: string,
  todo: string,
  code: ErrorCode = 'INVALID_OPTION',
): never {
  throw new CarillonError(code, `${field} ${problem}`, { field, given, todo });
}

/** A whole number within `min` and `max`; -0 becomes 0. @throws CarillonError INVALID_OPTION */
export function checkInteger(field: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    refuse(field, value, 'must be a whole number', `Give a whole number from ${min} to ${max}.`);
  }
  if (value < min || value > max) {
    refuse(field, value, `must lie between ${min} and ${max}`, `Give a whole number from ${min} to ${max}.`);
  }
  return value + 0;
}

/** @throws CarillonError INVALID_OPTION */
export function checkBoolean(field: string, value: unknown): boolean {
  if (typeof value !== 'boolean') refuse(field, value, 'must be true or false', 'Give true or false.');
  return value;
}

/** @throws CarillonError INVALID_OPTION */
export function checkOneOf<T extends string>(field: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined)
    refuse(field, value, 'is none of its values', `Give ${allowed.map((a) => `'${a}'`).join(' or ')}.`);
  return found;
}

/** A plain object of options. @throws CarillonError INVALID_OPTION */
export function checkObject(field: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse(field, value, 'must be an object of options', 'Give an object.');
  }
  return value as Record<string, unknown>;
}

const LOG_METHODS = ['debug', 'info', 'warn', 'error', 'child'] as const;

/** Something that can be logged to, and has children. @throws CarillonError INVALID_OPTION */
export function checkLogger(field: string, value: unknown): Logger {
  const missing = LOG_METHODS.find((method) => typeof (value as Logger | null)?.[method] !== 'function');
  if (missing !== undefined) {
    refuse(field, value, `has no method ${missing}()`, 'Give a pino logger, or an object with its methods.');
  }
  return value as Logger;
}
