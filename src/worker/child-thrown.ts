import { errorOfThrown } from './thrown.js';

/** The line of BullMQ's child that looks at what was thrown. */
const IN_CHILD = /^\n +at .*[\\/]child-processor\.[cm]?js:/;
const NOTHING = /^Cannot read properties of (null|undefined) \(reading 'message'\)$/;
/** All that is left of an error without a message. */
const ERROR_NAME = /^\w*Error$/;

/**
 * What a handler in a child threw, as its own worker would tell it: BullMQ's child reads the `message` of whatever it
 * is, and makes an error of a text. Which errors it made itself, their stacks tell.
 */
export function errorOfChild(error: unknown): unknown {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return error;
  const { message, stack } = error;
  const from = stack.indexOf(message) + message.length;
  if (message === '' || !IN_CHILD.test(stack.slice(from))) return error;
  const [, nothing] = NOTHING.exec(message) ?? [];
  if (nothing !== undefined) return errorOfThrown(nothing === 'null' ? null : undefined);
  return stack.startsWith(`Error: ${message}`) && !ERROR_NAME.test(message) ? errorOfThrown(message) : error;
}
