import { describe, expect, test } from 'vitest';
import { exactJson, storedData } from '../../../src/cli/exact-json.js';
import { JsonText } from '../../../src/queue/payload.js';

describe('exactJson', () => {
  test('lays a stored text out as JSON.stringify does', () => {
    const value = { a: [1, {}, [], { b: 'x: [1, 2] {"}' }], c: null, d: true, e: '' };
    const document = { id: 'x', job: { data: value }, list: [value] };
    const stored = new JsonText(JSON.stringify(value, null, 7));
    expect(exactJson({ id: 'x', job: { data: stored }, list: [stored] })).toBe(
      JSON.stringify(document, null, 2),
    );
  });

  test('keeps what JavaScript would change', () => {
    const text = '{"n":12345678901234567890,"f":1.0,"f":2}';
    expect(exactJson({ data: storedData(text), $: 1 })).toBe(
      '{\n  "data": {\n    "n": 12345678901234567890,\n    "f": 1.0,\n    "f": 2\n  },\n  "$": 1\n}',
    );
  });
});

test('a payload that JavaScript writes the same is its value, and no JSON a text', () => {
  expect(storedData(' {"a": [1, 2]} ')).toEqual({ a: [1, 2] });
  expect(storedData('{')).toBe('{');
});
