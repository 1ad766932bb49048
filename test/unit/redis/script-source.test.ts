import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseHeader, readScript, type ScriptFlag } from '../../../src/redis/script-source.js';
import { statusError } from '../../../src/redis/status.js';
import { packageRoot } from '../../../src/support/package-root.js';

const FOLDER = join(packageRoot(), 'lua');
const SCRIPTS = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.lua'))
  .map((file) => file.slice(0, -'.lua'.length));
const INCLUDES = readdirSync(join(FOLDER, 'lib')).map((file) => file.slice(0, -'.lua'.length));

const sourceOf = (name: string) => readFileSync(join(FOLDER, `${name}.lua`), 'utf8');
/** The status words that a script's body and its includes return. */
const WORDS_RETURNED = /return (?:nil, )?\{ '([A-Z_]+)'/g;

test('there are scripts to check', () => {
  expect(SCRIPTS.length).toBeGreaterThan(20);
});

describe.each(SCRIPTS)('%s.lua', (name) => {
  const source = sourceOf(name);
  const header = parseHeader(name, source);
  const script = readScript(name);
  const texts = Object.values(script.variants).map(({ text }) => text);

  test('has a whole header: name, purpose, flags, keys, args, returns, cost', () => {
    expect(header.name).toBe(name);
    expect(header.purpose).toMatch(/^[a-z].*[^.]$/s);
    expect(header.cost).toMatch(/^O\(/);
    expect(header.returns.split(' | ').map((word) => word.split(/[ (]/)[0])).toEqual(
      expect.arrayContaining(['WRONG_LAYOUT']),
    );
  });

  test('declares the two keys that never exist, so that a slot migration stops it before it writes', () => {
    expect(header.keys).toEqual(['1 none1 NONE T:none1', '2 none2 NONE T:none2']);
  });

  test('names each argument once, in order, and reads no other', () => {
    const numbers = header.args.map((arg) => Number(arg.match(/^(\d+) \w+ /)?.[1]));
    expect(numbers).toEqual(numbers.map((_, i) => i + 1));
    const read = [...texts.join('\n').matchAll(/ARGV\[(\d+)\]/g)].map((match) => Number(match[1]));
    expect(Math.max(...read)).toBeLessThanOrEqual(numbers.length);
  });

  test('returns no status word that its header does not name, and each of these is known to the client', () => {
    const body = texts[0] as string;
    const returned = new Set([...body.matchAll(WORDS_RETURNED)].map((match) => match[1] as string));
    const named = new Set(
      [...header.returns.matchAll(/(?:^|\| )([A-Z_]+)/g)].map((match) => match[1] as string),
    );
    expect([...returned].filter((word) => !named.has(word))).toEqual([]);
    expect([...named].filter((word) => !returned.has(word) && word !== 'ACQUIRED')).toEqual([]);
    for (const word of named) {
      if (!ANSWERS.has(word)) expect(statusError(word).code, word).not.toBe('BAD_SCRIPT');
    }
  });

  test('says how Redis treats it at maxmemory: shebang and flag', () => {
    const shebang: Record<ScriptFlag, string> = {
      'deny-oom': '#!lua\n',
      'allow-oom': '#!lua flags=allow-oom\n',
      'read-only': '#!lua flags=no-writes\n',
    };
    for (const flag of header.flags) expect(script.variants[flag]?.text.startsWith(shebang[flag])).toBe(true);
    expect(Object.keys(script.variants)).toEqual(header.flags);
  });

  test('holds no include line any more, and no switch of the tests', () => {
    for (const text of texts) {
      expect(text).not.toMatch(/@include/);
      expect(text).not.toMatch(/the virtual clock is not set|Fault tests only/);
    }
  });
});

/** Words that a typed call answers with, instead of throwing. */
const ANSWERS = new Set([
  'ASKED',
  'EFFECT_FAILED',
  'KNOWN',
  'PENDING',
  ...['OK', 'CLOCK_JUMP', 'BROKEN', 'RETRY', 'CONFLICT'],
  ...['HELD', 'ACQUIRED', 'STANDBY', 'LOST', 'RELEASED'],
]);

describe('includes', () => {
  test('each is used by some script, and has a line that says what it is for', () => {
    const used = SCRIPTS.map(sourceOf)
      .concat(INCLUDES.map((name) => sourceOf(`lib/${name}`)))
      .join('\n');
    for (const name of INCLUDES) {
      if (!['clock-virtual', 'fence-off'].includes(name)) expect(used).toContain(`--- @include "${name}"`);
    }
  });

  test('the clock and the fence are chosen when a script is loaded', () => {
    type Choices = Parameters<typeof readScript>[1];
    const body = (name: string, choices: Choices) => readScript(name, choices).variants['deny-oom']?.text;
    expect(body('reschedule-job', {})).toContain("redis.call('TIME')");
    expect(body('reschedule-job', { clock: 'virtual' })).not.toContain("redis.call('TIME')");
    expect(body('pop-due', { fence: 'off' })).toContain('Fault tests only');
    expect(body('pop-due', {})).toContain('return stored == mine');
  });

  test('an include is taken once, also when two includes name it', () => {
    const text = readScript('pop-due').variants['deny-oom']?.text ?? '';
    expect(text.match(/local function addBaseMarkerIfNeeded/g)).toHaveLength(1);
    expect(text.match(/local function writeHistory/g)).toHaveLength(1);
  });
});

describe('a header that is not whole is refused', () => {
  const good = sourceOf('get-job');
  test.each(['name', 'purpose', 'flags', 'keys', 'args', 'returns', 'cost'])('without %s', (field) => {
    const source = good.replace(new RegExp(`^-- ${field} .*$`, 'm'), '');
    expect(() => parseHeader('get-job', source)).toThrow(expect.objectContaining({ code: 'BAD_SCRIPT' }));
  });

  test('of another script, or with an unknown flag', () => {
    expect(() => parseHeader('other', good)).toThrow(/calls itself get-job/);
    expect(() => parseHeader('get-job', good.replace('read-only', 'write-only'))).toThrow(
      /unknown flag write-only/,
    );
  });

  test('a source that is not there', () => {
    expect(() => readScript('none')).toThrow(expect.objectContaining({ code: 'BAD_SCRIPT' }));
  });
});
