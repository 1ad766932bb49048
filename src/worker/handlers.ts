import { checkObject, checkOneOf, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { checkTimeout } from '../config/worker-options.js';
import type { Duration } from '../domain/durations.js';
import { EFFECTS, type Effects } from '../domain/effects.js';
import { CarillonError } from '../domain/errors.js';
import { checkJobName } from '../domain/ids.js';
import { nearestWord } from '../domain/nearest-word.js';
import type { Run } from './run.js';

/** Does the work of one run. What it returns is the result; what it throws fails the attempt. */
export type Handler<Data = unknown, Result = unknown> = (run: Run<Data>) => Promise<Result> | Result;

/** A handler and what is to be known of it. */
export interface HandlerOptions<Data = unknown, Result = unknown> {
  handle: Handler<Data, Result>;
  /** What repeats of a run do. Defaults to "may run twice". */
  effects?: Effects;
  /** How long an attempt may take. Defaults to the worker's. */
  timeout?: Duration;
}

/** A handler a job name; `Payloads` maps names to what their `data` is. */
// biome-ignore lint/suspicious/noExplicitAny: without types of its own a queue's payloads are BullMQ's `any`
export type Handlers<Payloads = any> = {
  [Name in keyof Payloads & string]: Handler<Payloads[Name]> | HandlerOptions<Payloads[Name]>;
};

export interface KnownHandler {
  readonly handle: Handler;
  readonly effects: Effects | undefined;
  /** ms; undefined for the worker's. */
  readonly timeout: number | undefined;
}

/** The handlers of a worker, by job name. @throws CarillonError INVALID_OPTION, INVALID_ID */
export function resolveHandlers(given: unknown): Map<string, KnownHandler> {
  const handlers = new Map<string, KnownHandler>();
  for (const [name, value] of Object.entries(checkObject('handlers', given))) {
    checkJobName(name, 'handlers');
    handlers.set(name, resolveHandler(`handlers.${name}`, value));
  }
  if (handlers.size === 0) refuse('handlers', given, 'name no job', 'Give a handler a job name.');
  return handlers;
}

function resolveHandler(field: string, value: unknown): KnownHandler {
  if (typeof value === 'function')
    return { handle: value as Handler, effects: undefined, timeout: undefined };
  const options = checkObject(field, value);
  rejectUnknown(options, ['handle', 'effects', 'timeout'], `${field}.`);
  if (typeof options.handle !== 'function') {
    refuse(`${field}.handle`, options.handle, 'must be a function', 'Give async (run) => { ... }.');
  }
  return {
    handle: options.handle as Handler,
    effects:
      options.effects === undefined ? undefined : checkOneOf(`${field}.effects`, options.effects, EFFECTS),
    timeout: options.timeout === undefined ? undefined : checkTimeout(`${field}.timeout`, options.timeout),
  };
}

/** The failure of a run whose name no handler has. */
export function unknownName(name: string, known: Iterable<string>): CarillonError {
  const names = [...known];
  const meant = nearestWord(name, names);
  return new CarillonError('UNKNOWN_JOB_NAME', `no handler for jobs named ${JSON.stringify(name)}`, {
    field: 'name',
    given: name,
    todo:
      meant === undefined
        ? `Add a handler to the worker; it has ${names.join(', ')}.`
        : `Did you mean ${meant}? Else add a handler to the worker.`,
  });
}
