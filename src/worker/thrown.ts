import { inspect, types } from 'node:util';

/** How deep causes are followed, and how many errors inside one error are told. */
const DEEPEST = 5;
const MOST = 10;
/** Characters of one cause, of all together, and of a value that is no error. */
const LONGEST_CAUSE = 800;
const LONGEST = 4000;
const LONGEST_VALUE = 300;

/** What a handler threw, as an error: BullMQ reads `message` of it, whatever it is, and a run would hang on `null`. */
export function errorOfThrown(thrown: unknown): Error {
  if (types.isNativeError(thrown) || thrown instanceof Error) return thrown;
  return new Error(`the handler threw ${shown(thrown)}`, { cause: thrown });
}

/**
 * Message and stack of an error with what is inside it: `fetch failed` alone says nothing. An error without a message has
 * that of the first inside it.
 */
export function tellWhole(error: Error): { message: string; stack: string } {
  const message = String(error.message ?? '');
  const stack = String(error.stack ?? `${error.name}: ${message}`);
  try {
    const inner = [...insideOf(error, new Set([error]))];
    const told = inner.map(textOf).filter((text) => text !== '' && !message.includes(text));
    const causes = told.map((text) => `\ncaused by: ${short(text, LONGEST_CAUSE)}`).join('');
    return { message: message || firstMessage(inner), stack: stack + short(causes, LONGEST) };
  } catch {
    // A getter that throws: what is told without it is told.
    return { message, stack };
  }
}

/** Causes and errors inside `error`, each before those inside it; a circle ends where it began. */
function* insideOf(error: unknown, seen: Set<unknown>, depth = 0): Generator<unknown> {
  if (depth === DEEPEST || typeof error !== 'object' || error === null) return;
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  const several: unknown[] = Array.isArray(errors) ? errors.slice(0, MOST) : [];
  for (const inner of cause === undefined || cause === null ? several : [cause, ...several]) {
    if (seen.has(inner)) continue;
    seen.add(inner);
    yield inner;
    yield* insideOf(inner, seen, depth + 1);
  }
}

/** By shape: a processor in a process of its own sends its errors as plain objects. */
function textOf(inner: unknown): string {
  const { stack, message } = (inner ?? {}) as { stack?: unknown; message?: unknown };
  if (typeof stack === 'string') return stack;
  if (typeof message === 'string') return message;
  // All that JSON leaves of an error without fields of its own.
  const text = shown(inner);
  return text === '{}' ? '' : text;
}

function firstMessage(inner: readonly unknown[]): string {
  for (const one of inner) {
    const { message } = (one ?? {}) as { message?: unknown };
    if (typeof message === 'string' && message !== '') return message;
  }
  return '';
}

function shown(value: unknown): string {
  try {
    const limits = {
      depth: 2,
      maxArrayLength: 10,
      maxStringLength: 200,
      breakLength: Number.POSITIVE_INFINITY,
    };
    return short(inspect(value, limits), LONGEST_VALUE);
  } catch {
    return `a value of type ${typeof value}`;
  }
}

function short(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}
