import { refuse } from '../config/check.js';

/** A payload that is JSON text already, and is stored as it is written: numbers that JavaScript cannot hold stay whole. */
export class JsonText {
  /** @throws SyntaxError */
  constructor(readonly text: string) {
    JSON.parse(text);
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/**
 * A payload as BullMQ stores it: `{}` where there is none.
 * @param maxPayload the queue's limit in bytes of UTF-8.
 * @param sizeLimit the job's own, as BullMQ has it.
 * @throws CarillonError INVALID_OPTION for what JSON cannot hold, and for more bytes than allowed.
 */
export function encodeData(data: unknown, maxPayload: number, sizeLimit?: number): string {
  const text = stringify(data === undefined ? {} : data);
  const limit = sizeLimit === undefined ? maxPayload : Math.min(sizeLimit, maxPayload);
  if (text.length * 3 > limit) {
    const bytes = Buffer.byteLength(text);
    if (bytes > limit) {
      const option = limit === sizeLimit ? 'its sizeLimit' : 'the queue’s maxPayload';
      refuse(
        'data',
        `${bytes} bytes`,
        `is larger than ${option} of ${limit} bytes of JSON`,
        'Store it elsewhere and pass a reference.',
      );
    }
  }
  return text;
}

function stringify(data: unknown): string {
  if (data instanceof JsonText) return data.text;
  let text: string | undefined;
  try {
    text = JSON.stringify(data);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    refuse(
      'data',
      typeof data,
      `cannot be written as JSON: ${why}`,
      'Give plain data; write a bigint as a text.',
    );
  }
  if (text === undefined) refuse('data', data, 'cannot be written as JSON', 'Give plain data.');
  return text;
}
