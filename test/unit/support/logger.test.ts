import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Logger } from '../../../src/support/logger.js';

const LOGGER = fileURLToPath(new URL('../../../src/support/logger.ts', import.meta.url));

function run(env: Record<string, string>) {
  const code = `import { defaultLogger } from ${JSON.stringify(LOGGER)};
    const log = defaultLogger();
    log.debug('a debug line');
    log.child({ queue: 'emails' }).info({ jobs: 3 }, 'an info line');`;
  const { CARILLON_LOG_LEVEL: _, ...inherited } = process.env;
  return spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { ...inherited, ...env },
  });
}

test('a pino instance is a Logger as it stands', () => {
  const lines: string[] = [];
  const logger: Logger = pino({ level: 'info' }, { write: (line: string) => lines.push(line) });
  logger.child({ a: 1 }).warn({ b: 2 }, 'text');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ a: 1, b: 2, msg: 'text' });
});

test('the default logger writes JSON on standard error from level info', () => {
  const { stdout, stderr } = run({});
  expect(stdout).toBe('');
  const lines = stderr.trim().split('\n');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    name: 'carillon',
    queue: 'emails',
    jobs: 3,
    msg: 'an info line',
  });
});

test('CARILLON_LOG_LEVEL sets the level, and a wrong one is refused', () => {
  expect(run({ CARILLON_LOG_LEVEL: 'debug' }).stderr).toContain('a debug line');
  expect(run({ CARILLON_LOG_LEVEL: 'silent' }).stderr).toBe('');
  const refused = run({ CARILLON_LOG_LEVEL: 'loud' });
  expect(refused.status).not.toBe(0);
  expect(refused.stderr).toContain('CARILLON_LOG_LEVEL is no log level: "loud"');
  expect(refused.stderr).toContain("code: 'INVALID_OPTION'");
});
