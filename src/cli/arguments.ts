import { readFileSync } from 'node:fs';
import { INSTEAD_OF_KEEP_LAST, insteadOf } from '../client/unsupported-options.js';
import { parseDuration } from '../domain/durations.js';
import { parseInstant } from '../domain/instant.js';
import { lostNumber } from '../domain/json-numbers.js';
import { JsonText } from '../queue/payload.js';
import { refuseArgument } from './failure.js';

/** A duration of the command line: `5m`, or digits for ms. @throws CarillonError INVALID_DURATION */
export function durationArgument(text: string, field: string): number {
  return parseDuration(/^\d+$/.test(text) ? Number(text) : text, { field });
}

/** An instant of the command line: ISO with its offset, or digits for ms since 1970. @throws CarillonError INVALID_OPTION */
export function instantArgument(text: string, field: string): number {
  return parseInstant(/^\d+$/.test(text) ? Number(text) : text, field);
}

/** @throws CarillonError INVALID_OPTION */
export function integerArgument(text: string, field: string, min: number, max: number): number {
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  return refuseArgument(field, text, 'must be a whole number', `Give one from ${min} to ${max}.`);
}

/** JSON of the command line. @throws CarillonError INVALID_OPTION */
export function jsonArgument(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refuseArgument(field, text, `is no JSON: ${why}`, `Write --${field} '{"to":"ann@example.com"}'.`);
  }
}

/** JSON of an object. @throws CarillonError INVALID_OPTION */
export function objectArgument(text: string, field: string): Record<string, unknown> {
  const value = jsonArgument(text, field);
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  return refuseArgument(field, text, 'must be a JSON object', `Write --${field} '{"attempts":3}'.`);
}

/**
 * BullMQ's options of a job. What no job of the timers can have is a wrong value of the command line.
 * @param instead what to do in the place of some of them.
 * @throws CarillonError INVALID_OPTION
 */
export function optsArgument(text: string, instead: { repeat?: string } = {}): Record<string, unknown> {
  const opts = objectArgument(text, 'opts');
  for (const [option, value] of Object.entries(opts)) {
    const usual = insteadOf(option);
    // What only says "no" asks for nothing.
    if (usual === undefined || value === false || value === null) continue;
    const todo = (option === 'repeat' ? instead.repeat : undefined) ?? usual;
    refuseArgument('opts', text, `holds ${option}, which no job of the timers can have`, todo);
  }
  const { keepLastIfActive } = (opts.deduplication ?? {}) as { keepLastIfActive?: unknown };
  if (keepLastIfActive === true) {
    refuseArgument(
      'opts',
      text,
      'holds keepLastIfActive, which the timers cannot keep',
      INSTEAD_OF_KEEP_LAST,
    );
  }
  return opts;
}

/** A payload from `--data` or from the file of `--data-file`, as it is written; `-` is standard input. */
export function dataArgument(options: { data?: string; dataFile?: string }): JsonText | undefined {
  if (options.data !== undefined && options.dataFile !== undefined) {
    refuseArgument('data', options.data, 'and data-file exclude each other', 'Give one of them.');
  }
  if (options.data !== undefined) return jsonText(options.data, 'data');
  if (options.dataFile === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(options.dataFile === '-' ? 0 : options.dataFile, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refuseArgument(
      'data-file',
      options.dataFile,
      `cannot be read: ${why}`,
      'Give the path of a JSON file.',
    );
  }
  return jsonText(text, 'data-file');
}

/**
 * The same for a schedule, whose payload is compared with others and written into files: numbers must be what they are
 * in JavaScript too.
 */
export function plainDataArgument(options: { data?: string; dataFile?: string }): JsonText | undefined {
  const data = dataArgument(options);
  const lost = data && lostNumber(data.text);
  if (lost === undefined) return data;
  const field = options.data === undefined ? 'data-file' : 'data';
  return refuseArgument(
    field,
    lost,
    'holds a number that would become another one',
    `Write it as a text: "${lost}".`,
  );
}

function jsonText(text: string, field: string): JsonText {
  jsonArgument(text, field);
  return new JsonText(text.trim());
}
