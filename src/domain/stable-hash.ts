/**
 * A hash of a text as a whole number in 0..2^53-1, spread evenly. Jitter and `H` rest on it: it may never change,
 * or every stored schedule would move. FNV-1a over UTF-16 units in two lanes, then the finisher of MurmurHash3.
 */
export function stableHash(text: string): number {
  let low = 0x811c9dc5;
  let high = 0xcbf29ce4;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ (unit + i), 0x01000193);
  }
  low = finish(low);
  high = finish(high ^ low);
  return (high >>> 11) * 0x1_0000_0000 + (low >>> 0);
}

function finish(lane: number): number {
  let h = lane ^ (lane >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
