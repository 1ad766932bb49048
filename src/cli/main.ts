#!/usr/bin/env node
import { run } from './program.js';
import { servesUntilSignal } from './signals.js';

// A reader that has seen enough (`| head`) is no failure; what serves goes on without one.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  if (!servesUntilSignal()) process.exit(0);
});
process.exitCode = await run(process.argv.slice(2));
