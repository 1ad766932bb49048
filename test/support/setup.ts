import { afterAll, afterEach, beforeEach } from 'vitest';
import { fileEnds, testEnds, testStarts } from './cleanup.js';

// Hooks registered here come first of all `before` hooks and last of all `after` hooks.
beforeEach(testStarts);
afterEach(testEnds);
afterAll(fileEnds);
