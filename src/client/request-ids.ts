import { checkCall } from '../config/call-options.js';
import { refuse } from '../config/check.js';
import { LONGEST_ID } from '../domain/ids.js';
import { MADE_UP, newRequestId } from '../redis/request-id.js';

/** Sent again with each repeat of the same change, which then has its effect once. */
export interface RequestOptions {
  /**
   * Names the call: the same method with the same id about the same job, schedule or calendar has its effect once, and
   * what the first call was given counts. Defaults to a new random one a call.
   */
  requestId?: string;
}

/** @throws CarillonError INVALID_OPTION */
export function checkRequestId(value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > LONGEST_ID || value.startsWith(MADE_UP)) {
    const rule = `must be a text of 1 to ${LONGEST_ID} characters, the first of them not NUL`;
    refuse('requestId', value, rule, 'Give one id a call.');
  }
  return value;
}

/** The caller's id, or a new one. @throws CarillonError INVALID_OPTION */
export function requestOf({ requestId }: RequestOptions): string {
  return requestId === undefined ? newRequestId() : checkRequestId(requestId);
}

/**
 * As {@link requestOf}, of a call whose options are checked by it.
 * @param own what the call takes besides; `switches`, those of them that are true or false.
 * @throws CarillonError INVALID_OPTION
 */
export function requestOfCall(
  options: RequestOptions,
  own: readonly string[] = [],
  switches: readonly string[] = [],
): string {
  checkCall(options, ['requestId', ...own], switches);
  return requestOf(options);
}
