import { beforeAll, beforeEach } from 'vitest';
import { fileEnds, testEnds, testStarts } from './cleanup.js';
import { failOnLeakedConnections, failOnLeakedServices, runningServices } from './leaks.js';

// Hooks registered here come before all others at the start and, as hooks unwind, after all others at the end;
// onTestFinished is later still than afterEach.
beforeEach(({ onTestFinished }) => {
  const before = runningServices();
  testStarts();
  onTestFinished(async () => {
    try {
      await failOnLeakedServices(before);
    } finally {
      await testEnds();
    }
  });
});

beforeAll(() => {
  const before = runningServices();
  return async () => {
    try {
      await failOnLeakedServices(before);
      await failOnLeakedConnections();
    } finally {
      await fileEnds();
    }
  };
});
