import type { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { away, plain, utc } from '../../../src/cli/output.js';
import { createProgram, run } from '../../../src/cli/program.js';

let out = '';
let err = '';

beforeEach(() => {
  out = '';
  err = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text;
    return true;
  });
  // A server that is not there: what reaches for one fails with another code.
  vi.stubEnv('CARILLON_REDIS_URL', 'redis://127.0.0.1:1');
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

function commandsOf(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...commandsOf(child)]);
}

describe('help', () => {
  const all = commandsOf(createProgram()).filter((command) => command.name() !== 'help');

  test('knows every command of the design', () => {
    const names = all.map((command) => `${command.parent?.name()} ${command.name()}`);
    expect(names).toEqual(
      expect.arrayContaining([
        'carillon dev',
        'carillon scheduler',
        'carillon doctor',
        ...['add', 'list', 'get', 'history', 'cancel', 'reschedule', 'pause', 'resume', 'promote'].map(
          (v) => `jobs ${v}`,
        ),
        ...'list next describe runs upsert update pause resume trigger backfill delete'
          .split(' ')
          .map((v) => `schedules ${v}`),
        'queues list',
        ...['list', 'release', 'discard'].map((v) => `quarantine ${v}`),
      ]),
    );
  });

  test.for(all.map((command) => [command.name(), command] as const))(
    '%s says what it does',
    ([, command]) => {
      expect(command.description()).not.toBe('');
      for (const option of command.options) expect(option.description).not.toBe('');
    },
  );

  test('goes to standard output when asked for, and there with examples', async () => {
    expect(await run(['jobs', 'add', '--help'])).toBe(0);
    expect(out).toContain('Examples:\n  carillon jobs add');
    expect(out).toContain('--redis <url>');
    expect(err).toBe('');
  });

  test('is shown for a noun without a verb, as wrong usage', async () => {
    expect(await run(['jobs'])).toBe(2);
    expect(err).toContain('Usage: carillon jobs');
    expect(out).toBe('');
  });

  test('--version is the package’s', async () => {
    expect(await run(['--version'])).toBe(0);
    expect(out).toMatch(/^\d+\.\d+\.\d+/);
  });
});

describe('wrong usage is one line on standard error, and exit code 2', () => {
  test.for([
    [['jbos', 'list'], "unknown command 'jbos' (USAGE). Did you mean jobs?"],
    [['jobs', 'ad', 'q', 'n'], "unknown command 'ad' (USAGE). Did you mean add?"],
    [['jobs', 'add', 'q'], "missing required argument 'name' (USAGE)"],
    [['jobs', 'add', 'q', 'n', '--dely', '5s'], "unknown option '--dely' (USAGE). Did you mean --delay?"],
    [['jobs', 'add', 'q', 'n', '--delay', '5x'], '(INVALID_DURATION)'],
    [
      ['jobs', 'add', 'q', 'n', '--delay', '1s', '--at', '5'],
      'at and delay exclude each other (INVALID_OPTION)',
    ],
    [['jobs', 'add', 'q', 'n', '--data', '{to:1}'], 'data is no JSON'],
    [['jobs', 'add', 'q', 'n', '--opts', '[]'], 'opts must be a JSON object (INVALID_OPTION)'],
    [
      ['jobs', 'list', '--limit', '0'],
      'limit must be a whole number (INVALID_OPTION). Give one from 1 to 1000.',
    ],
    [['jobs', 'reschedule', 'q', 'a'], 'delay or at is needed (INVALID_OPTION)'],
    [['schedules', 'next', '30', '2', '*', '*', '*'], 'Put an expression with blanks in quotes.'],
    [['schedules', 'next'], 'cron does not say when to fire'],
    [['schedules', 'next', '61 * * * *'], '(INVALID_CRON)'],
    [['schedules', 'next', '@daily', '--tz', 'Mars/Base'], '(INVALID_TIME_ZONE)'],
    [
      ['schedules', 'next', '@daily', '--gap', 'jump'],
      'gap "jump" is unknown; write one of shift, edge, skip',
    ],
    [['schedules', 'next', '@daily', '--count', '1001'], 'Give one from 1 to 1000.'],
    [['schedules', 'next', 'q', 's', '--tz', 'UTC'], 'tz is not asked of a stored schedule (INVALID_OPTION)'],
    [
      ['schedules', 'upsert', 'q', 's', '--every', '5m'],
      "required option '--missed <policy>' not specified (USAGE)",
    ],
    [['scheduler', '--ttl', '1s'], 'ttl'],
    [['scheduler', '--memory-headroom', '-1'], 'memory-headroom must be a whole number'],
    [['dev', '--port', '70000'], 'port must be a whole number (INVALID_OPTION). Give one from 1 to 65535.'],
    [['dev', '--queue', 'a:b'], 'queue holds a colon'],
    [['--namespace', 'a{b', 'queues', 'list'], 'namespace must be a name without braces'],
    [['--redis', 'http://x', 'queues', 'list'], 'connection is no Redis URL'],
    [['--config', '/nowhere.json', 'queues', 'list'], 'the settings file /nowhere.json cannot be read'],
    [['doctor', '--pause', '2h'], '(INVALID_DURATION)'],
  ] as const)('%j', async ([args, text]) => {
    const code = await run(args);
    expect(err).toContain(text);
    expect(err).toMatch(/^error: [^\n]+\n$/);
    expect(code).toBe(2);
    expect(out).toBe('');
  });

  test('with --json it is a document as well, wherever the flag stands', async () => {
    expect(await run(['jobs', 'add', 'q', 'n', '--delay', '5x', '--json'])).toBe(2);
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'INVALID_DURATION', field: 'delay' } });
    expect(err).toMatch(/^error: /);
  });
});

test('a server that is not there is said at once, without a stack, exit code 1', async () => {
  expect(await run(['queues', 'list'])).toBe(1);
  expect(err).toMatch(
    /^error: Redis at redis:\/\/127\.0\.0\.1:1 does not answer: [^\n]+ \(REDIS_UNAVAILABLE\)[^\n]+\n$/,
  );
});

test('a password is not told', async () => {
  await run(['--redis', 'redis://ann:secret@127.0.0.1:1', 'queues', 'list']);
  expect(err).toContain('redis://…@127.0.0.1:1');
  expect(err).not.toContain('secret');
});

test('the stack is for those who debug', async () => {
  vi.stubEnv('CARILLON_LOG_LEVEL', 'debug');
  await run(['queues', 'list']);
  expect(err).toMatch(/\n\s+at /);
});

test('texts of the output', () => {
  expect(utc(undefined)).toBe('-');
  expect(utc(1_800_000_000_000)).toBe('2027-01-15T08:00:00.000Z');
  expect(away(10_000, 5_000)).toBe('in 5s');
  expect(away(5_000, 3_725_000)).toBe('1h2m ago');
  expect(away(1, 2)).toBe('now');
  expect(plain('a\u001b[31m\nb')).toBe('a\\u001b[31m\\nb');
});
