/** A contiguous range of buckets that the caller leads, and the fence that proves it. */
export interface OwnedRange {
  first: number;
  last: number;
  /** Since when the range is served without a break, in ms of Redis' clock. */
  servedFrom: number;
  /** `<epoch number>|<epoch id>|<token>|<holder>`. */
  fence: string;
}

/** The ranges as every leader script is given them; lua/lib/owned.lua reads it. */
export function packOwned(owned: readonly OwnedRange[]): Buffer {
  return Buffer.concat(
    owned.map((range) => {
      const fence = Buffer.from(range.fence, 'utf8');
      const header = Buffer.allocUnsafe(10);
      header.writeUInt8(range.first, 0);
      header.writeUInt8(range.last, 1);
      header.writeUIntBE(range.servedFrom, 2, 6);
      header.writeUInt16BE(fence.length, 8);
      return Buffer.concat([header, fence]);
    }),
  );
}
