const CR = 13;

/**
 * Cuts a Redis byte stream, RESP2 or RESP3, either direction, into whole top-level frames, so that a proxy can tell
 * which reply belongs to which request without understanding either.
 */
export class RespFrames {
  #rest: Buffer = Buffer.alloc(0);

  /** Takes the next bytes and returns the frames that they complete. */
  push(chunk: Buffer): Buffer[] {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Buffer[] = [];
    let start = 0;
    for (;;) {
      const end = endOfFrame(data, start);
      if (end === undefined) break;
      frames.push(data.subarray(start, end));
      start = end;
    }
    this.#rest = data.subarray(start);
    return frames;
  }
}

/** A push message (RESP3 pub/sub, invalidation) is nobody's reply. */
export function isPush(frame: Buffer): boolean {
  return frame[0] === '>'.charCodeAt(0);
}

/** Where the frame that begins at `start` ends; undefined when it is not all there yet. */
function endOfFrame(data: Buffer, start: number): number | undefined {
  let at = start;
  // How many values are still to come; an aggregate adds its members.
  let values = 1;
  while (values > 0) {
    const cr = data.indexOf(CR, at);
    if (cr === -1 || cr + 2 > data.length) return undefined;
    const count = Number(data.toString('latin1', at + 1, cr));
    const next = cr + 2;
    switch (String.fromCharCode(data[at] as number)) {
      case '$': // bulk string, error, verbatim text; -1 is null
      case '!':
      case '=':
        at = count < 0 ? next : next + count + 2;
        values -= 1;
        break;
      case '*': // array, set, push
      case '~':
      case '>':
        at = next;
        values += Math.max(count, 0) - 1;
        break;
      case '%':
        at = next;
        values += 2 * count - 1;
        break;
      case '|': // attributes precede a value and are none
        at = next;
        values += 2 * count;
        break;
      default:
        at = next;
        values -= 1;
    }
    if (at > data.length) return undefined;
  }
  return at;
}
