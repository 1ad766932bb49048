import { createHash, randomBytes } from 'node:crypto';

/** Bytes of a request's hash that a record keeps. */
const HASH_BYTES = 7;
/** A bulk's items share five of them; the other two are the item's index. */
const CALL_BYTES = 5;
/** The top bit of a hash: the caller named the request. lua/lib/request.lua reads it. */
const NAMED = 0x80;

/** What an id that the client made up begins with, and none of a caller's does. */
export const MADE_UP = '\0';

/** What a request asks for: the same id in two operations means two requests. */
export type Operation =
  | 'add'
  | 'reschedule'
  | 'changeDelay'
  | 'update'
  | 'cancel'
  | 'pause'
  | 'resume'
  | 'promote'
  | 'giveBack'
  | 'release'
  | 'discard'
  | 'upsert'
  | 'delete'
  | 'trigger'
  | 'backfill'
  | 'set';

/** A fresh id for one mutating call, made once and sent again with each repeat of it. */
export function newRequestId(): string {
  return MADE_UP + randomBytes(16).toString('base64url');
}

/** What a script is given of a request. */
export function requestHash(operation: Operation, requestId: string): Buffer {
  return hashOf(operation, requestId, HASH_BYTES);
}

/** What submit is given: the script adds each item's index. */
export function callHash(requestId: string): Buffer {
  return hashOf('add', requestId, CALL_BYTES);
}

function hashOf(operation: Operation, requestId: string, length: number): Buffer {
  const hash = createHash('sha1').update(`${operation}\n${requestId}`).digest().subarray(0, length);
  const first = hash.readUInt8(0) % NAMED;
  hash.writeUInt8(requestId.startsWith(MADE_UP) ? first : first + NAMED, 0);
  return hash;
}
