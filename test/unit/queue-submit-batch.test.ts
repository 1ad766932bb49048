import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { decodeRecord } from '../../src/redis/record.js';
import { SUBMIT_BYTES, SUBMIT_ITEMS, SubmitBatch, type SubmitItem } from '../../src/redis/submit-batch.js';
import { aJob } from '../support/builders.js';

/** Reads the packed items back as the script does: the record's fixed head is the script's part. */
function unpack(packed: Buffer) {
  const items: object[] = [];
  for (let p = 0; p < packed.length; ) {
    const flags = packed.readUInt8(p);
    const recordFlags = packed.readUInt8(p + 1);
    const bucket = packed.readUInt8(p + 2);
    const idLength = packed.readUInt16BE(p + 5);
    const time = packed.readUIntBE(p + 7, 6);
    const restLength = packed.readUInt32BE(p + 13);
    const identity = packed.toString('utf8', p + 17, p + 17 + idLength);
    const rest = packed.subarray(p + 17 + idLength, p + 17 + idLength + restLength);
    const head = Buffer.alloc(16);
    head.writeUInt8(0x10, 0);
    head.writeUInt8(0x10, 1);
    head.writeUInt8(recordFlags, 2);
    const record = decodeRecord(Buffer.concat([head, rest]));
    items.push({ flags, bucket, time, identity, record });
    p += 17 + idLength + restLength;
  }
  return items;
}

const text = fc.string({ unit: 'binary', maxLength: 40 }).filter((given) => given.isWellFormed());

describe('SubmitBatch', () => {
  test('packs what the record codec reads back, byte for byte', () => {
    const item = fc.record({
      jobId: text.filter((id) => id !== ''),
      name: text,
      data: text,
      opts: text,
      chosen: fc.boolean(),
      relative: fc.boolean(),
      replace: fc.boolean(),
      dedup: fc.boolean(),
      lifo: fc.boolean(),
      time: fc.integer({ min: 0, max: 253_402_300_799_999 }),
      priority: fc.integer({ min: 0, max: 2_097_151 }),
      timestamp: fc.option(fc.integer({ min: 1, max: 253_402_300_799_999 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(item, { maxLength: 20 }), (given) => {
        const items = given.map((one): SubmitItem => ({ ...aJob(one.jobId), ...one }));
        const batch = new SubmitBatch('q é');
        for (const one of items) expect(batch.add(one)).toBe(true);
        expect(unpack(batch.packed)).toMatchObject(
          items.map((one) => ({
            identity: `q é:${one.jobId}`,
            bucket: bucketOf(`q é:${one.jobId}`),
            time: one.time,
            flags: (one.relative ? 1 : 0) | (one.chosen ? 2 : 0) | (one.replace ? 4 : 0),
            record: {
              name: one.name,
              data: one.data,
              opts: one.opts,
              priority: one.priority,
              lifo: one.lifo,
              timestamp: one.timestamp ?? 0,
            },
          })),
        );
      }),
    );
  });

  test('a call holds so many items, so many bytes, and one window', () => {
    const many = new SubmitBatch('q');
    for (let n = 0; n < SUBMIT_ITEMS; n++) expect(many.add(aJob(`j${n}`))).toBe(true);
    expect(many.add(aJob('one-more'))).toBe(false);

    const large = new SubmitBatch('q');
    const half = 'x'.repeat(SUBMIT_BYTES / 2);
    expect(large.add(aJob('a', { data: half }))).toBe(true);
    const packed = Buffer.from(large.packed);
    expect(large.add(aJob('b', { data: half }))).toBe(false);
    expect(large.packed).toEqual(packed);
    expect(large.add(aJob('c'))).toBe(true);

    const windows = new SubmitBatch('q');
    expect(windows.add(aJob('a', { window: 0 }))).toBe(true);
    expect(windows.add(aJob('b', { window: 5 }))).toBe(false);
    expect(windows.window).toBe(0);
  });

  test('an item larger than a call is a call of its own', () => {
    const batch = new SubmitBatch('q');
    const data = 'é'.repeat(SUBMIT_BYTES);
    expect(batch.add(aJob('huge', { data }))).toBe(true);
    expect(batch.add(aJob('next'))).toBe(false);
    expect(unpack(batch.packed)).toMatchObject([{ identity: 'q:huge', record: { data } }]);
  });
});
