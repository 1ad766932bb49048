// Prints "N passed, N failed" from vitest's JSON report and the number of broken steps; exits 1 unless all is well.
//   node scripts/test-count.mjs <report.json> <broken steps>
import { readFileSync } from 'node:fs';

const [, , file, brokenSteps] = process.argv;

function counts() {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // vitest did not get as far as a report.
    return { passed: 0, failed: 1 };
  }
  // A file that fails outside its tests, by a syntax error or a hook, has no failed test to show for it.
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length;
  return { passed: report.numPassedTests, failed: report.numFailedTests + brokenFiles };
}

const { passed, failed } = counts();
// The step of the tests is broken too when tests failed: count it only when nothing else tells of the failure.
const steps = Number(brokenSteps);
const total = failed > 0 ? failed + Math.max(steps - 1, 0) : steps;
console.log(`${passed} passed, ${total} failed`);
process.exitCode = total === 0 && passed > 0 ? 0 : 1;
