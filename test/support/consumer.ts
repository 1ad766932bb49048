import { inject } from 'vitest';

/** What test/support/packed-consumer.ts made. Throws what went wrong there, so that only these tests fail by it. */
function packed() {
  const made = inject('packed');
  if ('failure' in made) throw new Error(`the package could not be packed and installed:\n${made.failure}`);
  return made;
}

/** The tarball as npm would publish it. */
export function tarball(): string {
  return packed().tarball;
}

/** A project outside this repository, with the tarball and bullmq installed as a user would. */
export function consumer(): string {
  return packed().consumer;
}

/** The Node that runs the packed tarball: `CARILLON_TEST_NODE`, which scripts/test-long.sh sets, else our own. */
export function consumerNode(): string {
  return process.env.CARILLON_TEST_NODE ?? process.execPath;
}
