import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { refuse } from '../config/check.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import type { Job } from '../queue/job.js';
import { errorOfChild, nothingThrown } from './child-thrown.js';
import type { Run } from './run.js';

interface Child {
  send(message: unknown): Promise<void>;
  on(event: 'message', listener: (message: { value?: unknown }) => void): void;
}

/** What of BullMQ's pool of child processes, or threads, is needed here. */
export interface Children {
  retain(file: string): Promise<Child>;
  release(child: Child): void;
  kill(child: Child, signal: 'SIGKILL'): Promise<void>;
}

/** BullMQ's way to have a job done in a child of its pool. */
export type Sandbox = (job: Job<unknown>, lock: string, signal: AbortSignal) => Promise<unknown>;

interface Started {
  child?: Child;
  /** Nobody waits for it any more. */
  over: boolean;
}

/** Endings of a file's name that BullMQ takes as they are. */
const ENDINGS = ['.js', '.ts', '.flow', '.cjs', '.mjs'];

/** BullMQ would refuse it too, but leave its connections open. @throws CarillonError INVALID_OPTION */
export function checkFile(file: string | URL): void {
  const path = typeof file === 'string' && !ENDINGS.includes(extname(file)) ? `${file}.js` : file;
  if (existsSync(path)) return;
  refuse('processor', String(path), 'is no file', 'Give the path of a file that exports the processor.');
}

/**
 * A processor in a file, whose runs are done by BullMQ in children: with the signal carried over, and a child that does
 * not stop killed.
 */
export class FileProcessor {
  readonly #known = new WeakSet<Child>();
  readonly #ending = new WeakSet<Child>();
  readonly #started = new Map<string, Started>();
  /** The run that is being handed to BullMQ, which asks for a child before it returns. */
  #next: Started | undefined;

  constructor(
    private readonly sandbox: Sandbox,
    private readonly children: Children,
  ) {
    const retain = children.retain.bind(children);
    children.retain = async (file) => {
      const started = this.#next;
      const child = await retain(file);
      this.#meet(child);
      if (started === undefined) return child;
      started.child = child;
      if (started.over) {
        await children.kill(child, 'SIGKILL');
        throw new CarillonError('RUN_STOPPED', 'the run had to stop before its process was ready');
      }
      return child;
    };
    const release = children.release.bind(children);
    children.release = (child) => {
      if (this.#ending.has(child)) void children.kill(child, 'SIGKILL');
      else release(child);
    };
  }

  /** BullMQ does not wait for what it sends: one that has ended meanwhile would end this process too. Its exit is heard. */
  #meet(child: Child): void {
    if (this.#known.has(child)) return;
    this.#known.add(child);
    // It ends by itself, soon: the next run must not be given to it.
    child.on('message', ({ value }) => {
      if (nothingThrown(value) !== undefined) this.#ending.add(child);
    });
    const send = child.send.bind(child);
    child.send = (message) => send(message).catch(() => undefined);
  }

  async run(run: Run, lock: string): Promise<unknown> {
    const started: Started = { over: false };
    this.#started.set(run.runId, started);
    const stop = new AbortController();
    // Of an error that is sent to a process, the message would be lost.
    const tell = () => stop.abort(plain(run.signal.reason));
    run.signal.addEventListener('abort', tell, { once: true });
    try {
      this.#next = started;
      const work = this.sandbox(run.job, lock, stop.signal);
      this.#next = undefined;
      return await work;
    } catch (error) {
      throw errorOfChild(error);
    } finally {
      run.signal.removeEventListener('abort', tell);
      if (this.#started.get(run.runId) === started) this.#started.delete(run.runId);
    }
  }

  /** Ends the child that has the run, and what it does there. Resolves when it has ended. */
  async kill(runId: string): Promise<void> {
    const started = this.#started.get(runId);
    if (started === undefined) return;
    started.over = true;
    if (started.child !== undefined) await this.children.kill(started.child, 'SIGKILL');
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#started.keys()].map((runId) => this.kill(runId)));
  }
}

function plain(reason: unknown): unknown {
  if (!isCarillonError(reason)) return reason instanceof Error ? { message: reason.message } : reason;
  const { name, code, message } = reason;
  return { name, code, message };
}
