/**
 * Everything that test support starts is stopped here, newest first: what a test started when that test ends, what
 * a file started (in `beforeAll` or at its top) when the file ends. A test that fails cleans up like any other.
 */
interface Entry {
  label: string;
  stop: () => Promise<void> | void;
}

const ofFile = new Set<Entry>();
const ofTest = new Set<Entry>();
let testsRunning = 0;
let keptByFile = false;

/** Registers `stop` for the end of the running test, or of the file if none runs. Returns a function that takes it back. */
export function onCleanup(label: string, stop: () => Promise<void> | void): () => void {
  const entry = { label, stop };
  const scope = testsRunning > 0 && !keptByFile ? ofTest : ofFile;
  scope.add(entry);
  return () => {
    scope.delete(entry);
  };
}

/** What `start` registers before it returns lives as long as the file, though a test starts it. */
export function keepForFile<T>(start: () => T): T {
  keptByFile = true;
  try {
    return start();
  } finally {
    keptByFile = false;
  }
}

export function testStarts(): void {
  testsRunning += 1;
}

/** Stops what the test started. Concurrent tests share one scope, which closes with the last of them. */
export async function testEnds(): Promise<void> {
  testsRunning -= 1;
  if (testsRunning === 0) await stopAll(ofTest);
}

export async function fileEnds(): Promise<void> {
  await stopAll(ofTest);
  await stopAll(ofFile);
}

async function stopAll(scope: Set<Entry>): Promise<void> {
  const failures: unknown[] = [];
  for (const entry of [...scope].reverse()) {
    scope.delete(entry);
    try {
      await entry.stop();
    } catch (error) {
      failures.push(new Error(`${entry.label} did not stop`, { cause: error }));
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'cleanup failed');
}
