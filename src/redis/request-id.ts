import { createHash, randomBytes } from 'node:crypto';

/** Bytes of a request's hash that a record keeps. */
const HASH_BYTES = 7;
/** A bulk's items share five of them; the other two are the item's index. */
const CALL_BYTES = 5;

/** A fresh id for one mutating call, made once and sent again with each repeat of it. */
export function newRequestId(): string {
  return randomBytes(16).toString('base64url');
}

/** What a script is given of a request id. */
export function requestHash(requestId: string): Buffer {
  return createHash('sha1').update(requestId).digest().subarray(0, HASH_BYTES);
}

/** What submit is given: the script adds each item's index. */
export function callHash(requestId: string): Buffer {
  return createHash('sha1').update(requestId).digest().subarray(0, CALL_BYTES);
}
