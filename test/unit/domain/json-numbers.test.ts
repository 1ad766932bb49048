import { describe, expect, test } from 'vitest';
import { jsonTokens, lostNumber, survives } from '../../../src/domain/json-numbers.js';

describe('numbers that JavaScript would make others', () => {
  test.each([
    '12345678901234567890', '-9007199254740993', '1e999', '-1e999', '0.12345678901234567890', '1e-999',
  ])('%s is one', (number) => {
    expect(lostNumber(`{"a":[1,{"b":${number}}]}`)).toBe(number);
  }); // biome-ignore format: one list

  test.each([
    '0', '-0', '0.0', '1.50', '1e2', '1E+2', '100e-2', '9007199254740991', '9007199254740992', '1152921504606847000', '1e21',
    '0.1', '5e-324', '1.7976931348623157e308', '123.456e-7',
  ])('%s is none', (number) => {
    expect(lostNumber(`[${number}]`)).toBeUndefined();
  }); // biome-ignore format: one list

  test('what every number of JavaScript is written as is none', () => {
    for (let power = -320; power < 309; power++) {
      const value = Number(`7.123456789e${power}`);
      expect(lostNumber(JSON.stringify([value, -value]))).toBeUndefined();
    }
  });

  test('digits in a text are none', () => {
    expect(lostNumber('{"12345678901234567890":"\\"12345678901234567890"}')).toBeUndefined();
  });

  test('as YAML writes them', () => {
    for (const [text, value] of [
      ['0x1F', 31],
      ['0o17', 15],
      ['+.5', 0.5],
      ['5.', 5],
    ] as const) {
      expect(survives(text, value)).toBe(true);
    }
    expect(survives('0x1fffffffffffffff', Number('0x1fffffffffffffff'))).toBe(false);
    expect(survives('.inf', Number.POSITIVE_INFINITY)).toBe(false);
    expect(survives('.nan', Number.NaN)).toBe(false);
  });
});

test('the parts of a JSON text are as they are written', () => {
  expect(jsonTokens(' { "a b" : [ 1.0 , -2e5,true ,null, "\\"]" ] } ').join('')).toBe(
    '{"a b":[1.0,-2e5,true,null,"\\"]"]}',
  );
});
