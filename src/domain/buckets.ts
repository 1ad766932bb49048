/** How many hash buckets there are, for ever: partitions are ranges of them, and their data never moves. */
export const BUCKETS = 256;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[((crc >> 8) ^ byte) & 0xff] as number);
}

/** The bucket of an identity that stands in `bytes` as UTF-8: its CRC16 (XMODEM, the one of Redis Cluster), modulo 256. */
export function bucketOfBytes(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let crc = 0;
  for (let i = from; i < to; i++) {
    crc = next(crc, bytes[i] as number);
  }
  return crc & (BUCKETS - 1);
}

/** The bucket of an identity. */
export function bucketOf(identity: string): number {
  let crc = 0;
  for (let i = 0; i < identity.length; i++) {
    const code = identity.charCodeAt(i);
    // The bytes of what is not ASCII are others.
    if (code > 127) return bucketOfBytes(Buffer.from(identity, 'utf8'));
    crc = next(crc, code);
  }
  return crc & (BUCKETS - 1);
}
