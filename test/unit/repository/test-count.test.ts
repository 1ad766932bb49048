import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../../scripts/test-count.mjs', import.meta.url));

/** What the last line of scripts/test.sh says of a report, and the exit code. */
function count(report: object | string, brokenSteps: number): { line: string; code: number | null } {
  const dir = mkdtempSync(join(tmpdir(), 'carillon-count-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'report.json');
  if (report !== '') writeFileSync(file, typeof report === 'string' ? report : JSON.stringify(report));
  const { stdout, status } = spawnSync(process.execPath, [SCRIPT, file, String(brokenSteps)], {
    encoding: 'utf8',
  });
  return { line: stdout, code: status };
}

function report(passed: number, failed: number, files: ('passed' | 'failed' | 'broken')[]) {
  return {
    numPassedTests: passed,
    numFailedTests: failed,
    testResults: files.map((file) => ({
      status: file === 'passed' ? 'passed' : 'failed',
      assertionResults: [{ status: file === 'failed' ? 'failed' : 'passed' }],
    })),
  };
}

test.each([
  ['all is well', report(12, 0, ['passed', 'passed']), 0, '12 passed, 0 failed', 0],
  ['tests failed', report(10, 2, ['passed', 'failed']), 1, '10 passed, 2 failed', 1],
  ['a file broke outside its tests', report(10, 0, ['passed', 'broken']), 1, '10 passed, 1 failed', 1],
  ['only lint failed', report(12, 0, ['passed']), 1, '12 passed, 1 failed', 1],
  ['lint and tests failed', report(10, 2, ['failed']), 2, '10 passed, 3 failed', 1],
  ['vitest ended badly after good tests', report(12, 0, ['passed']), 1, '12 passed, 1 failed', 1],
  ['vitest did not run', '', 1, '0 passed, 1 failed', 1],
  ['the report is cut short', '{"numPassedTests": 3', 1, '0 passed, 1 failed', 1],
  ['there was no test', report(0, 0, []), 0, '0 passed, 0 failed', 1],
])('%s', (_, given, brokenSteps, line, code) => {
  expect(count(given, brokenSteps)).toEqual({ line: `${line}\n`, code });
});
