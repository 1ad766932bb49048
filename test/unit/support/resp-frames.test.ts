import { expect, test } from 'vitest';
import { isPush, RespFrames } from '../../support/resp-frames.js';

const FRAMES = [
  '+OK\r\n',
  '-ERR no\r\n',
  ':12\r\n',
  '$5\r\na\r\nbc\r\n',
  '$-1\r\n',
  '$0\r\n\r\n',
  '*-1\r\n',
  '*0\r\n',
  '*3\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n%1\r\n+k\r\n~2\r\n#t\r\n,1.5\r\n',
  '>3\r\n$7\r\nmessage\r\n+c\r\n$4\r\n\r\n\r\n\r\n',
  '|1\r\n+ttl\r\n:3600\r\n*1\r\n=7\r\ntxt:abc\r\n',
  '(349249\r\n',
  'PING\r\n',
];

test.each([1, 2, 3, 7, 1000])('frames arrive whole in pieces of %i bytes', (size) => {
  const bytes = Buffer.from(FRAMES.join(''), 'latin1');
  const frames = new RespFrames();
  const seen: string[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    seen.push(...frames.push(bytes.subarray(at, at + size)).map((frame) => frame.toString('latin1')));
  }
  expect(seen).toEqual(FRAMES);
});

test('only a push is a push', () => {
  expect(FRAMES.filter((frame) => isPush(Buffer.from(frame)))).toEqual([FRAMES[9]]);
});
