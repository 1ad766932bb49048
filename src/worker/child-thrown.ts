import { errorOfThrown } from './thrown.js';

/** The line of BullMQ's child that looks at what was thrown. */
const IN_CHILD = /^\n +at .*[\\/]child-processor\.[cm]?js:/;
const NOTHING = /^Cannot read properties of (null|undefined) \(reading 'message'\)$/;
/** All that is left of an error without a message. */
const ERROR_NAME = /^\w*Error$/;

/** An error as a child sends it. */
interface Sent {
  message?: unknown;
  stack?: unknown;
}

/**
 * What a handler in a child threw, as a handler's of the worker itself is told: BullMQ's child reads the `message` of
 * whatever it is, and makes an error of a text.
 */
export function errorOfChild(error: unknown): unknown {
  const nothing = nothingThrown(error);
  if (nothing !== undefined) return errorOfThrown(nothing === 'null' ? null : undefined);
  const message = madeByChild(error);
  const isText = message !== undefined && !ERROR_NAME.test(message);
  return isText && String((error as Sent).stack).startsWith('Error: ') ? errorOfThrown(message) : error;
}

/** Whether `null` or `undefined` was thrown: BullMQ's child fails at it itself, tells of that, and ends. */
export function nothingThrown(error: unknown): string | undefined {
  return NOTHING.exec(madeByChild(error) ?? '')?.[1];
}

/** The message of an error that BullMQ's child made itself, as its stack tells. */
function madeByChild(error: unknown): string | undefined {
  const { message, stack } = (error ?? {}) as Sent;
  if (typeof message !== 'string' || message === '' || typeof stack !== 'string') return undefined;
  const behind = stack.slice(stack.indexOf(message) + message.length);
  return IN_CHILD.test(behind) ? message : undefined;
}
