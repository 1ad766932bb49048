import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CarillonError } from '../domain/errors.js';
import { freePort } from './redis-process.js';

export interface EtcdProcessOptions {
  /** An existing folder; each member keeps its data in a folder of its own in it. */
  dir: string;
  /** How many members. Defaults to 1. */
  members?: number;
  /** More of etcd's flags: `{ 'cert-file': '…' }`. */
  settings?: Readonly<Record<string, string>>;
  /** Called at once with each process, which may not answer yet. */
  onSpawn?: (child: ChildProcess) => void;
  /** What to do instead where there is no etcd, as the end of a sentence that begins with installing one. */
  instead: string;
}

/** ms until a cluster must have elected its leader. */
const STARTS = 60_000;
/** ms for an orderly end; then it is killed. */
const ENDS = 5000;
/** Somebody else may take a port between our look and etcd's start. */
const ATTEMPTS = 3;
/** Written by each member once it is part of a cluster with a leader; in both of etcd's log formats. */
const READY = 'ready to serve client requests';

/**
 * One etcd member of our own on loopback. **running** until `stop()` or `kill9()`; then `restart()` begins it again on
 * the same ports and data. A frozen one (`signal('SIGSTOP')`) keeps its sockets open and answers nothing.
 */
export class EtcdMember {
  #child: ChildProcess | undefined;
  #log = '';
  #stopped = false;
  #fail: (error: CarillonError) => void = () => undefined;
  /** Rejects when the member ends without being stopped. */
  readonly died: Promise<never>;

  constructor(
    readonly url: string,
    /** Where it keeps its data; it outlives the process. */
    readonly dir: string,
    private readonly flags: readonly string[],
    private readonly options: EtcdProcessOptions,
  ) {
    this.died = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    this.died.catch(() => undefined);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get running(): boolean {
    const child = this.#child;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** The last of what it printed. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when it serves. @throws CarillonError UNSUPPORTED without etcd, ETCD_UNAVAILABLE, TIMEOUT */
  async start(): Promise<void> {
    this.#stopped = false;
    this.#log = '';
    const binary = process.env.CARILLON_ETCD_SERVER || 'etcd';
    // In a group of its own: the terminal's Ctrl-C is for us alone, who stop it last.
    const child = spawn(binary, this.flags, {
      cwd: this.options.dir,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      // etcd reads ETCD_* as flags: those of our caller are not meant for it.
      env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' },
    });
    this.#child = child;
    if (child.pid !== undefined) this.options.onSpawn?.(child);
    const ready = deferred();
    ready.promise.catch(() => undefined);
    const keep = (chunk: Buffer) => {
      this.#log = (this.#log + chunk.toString()).slice(-20_000);
      if (this.#log.includes(READY)) ready.resolve();
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    const timer = setTimeout(() => {
      ready.reject(new CarillonError('TIMEOUT', `etcd on ${this.url} did not serve within a minute`));
    }, STARTS);
    const ended = (error: CarillonError) => {
      ready.reject(error);
      if (!this.#stopped && this.#child === child) this.#fail(error);
    };
    child.once('error', (error: NodeJS.ErrnoException) =>
      ended(cannotRun(binary, error, this.options.instead)),
    );
    // 'close' comes after the last output.
    child.once('close', () => ended(endedByItself(this.url, this.#log)));
    try {
      await ready.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Dies at once, as by a power cut of the process. */
  async kill9(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Ends in order, at once when that takes longer than five seconds. Safe to call twice. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Begins again on the same data. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#stopped = true;
    const child = this.#child;
    if (child === undefined || !this.running) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    // One that is frozen hears nothing else.
    child.kill('SIGCONT');
    const timer = setTimeout(() => child.kill('SIGKILL'), ENDS);
    await exited;
    clearTimeout(timer);
  }
}

/** Members that are one cluster. */
export interface EtcdCluster {
  readonly members: readonly EtcdMember[];
  /** The client URLs. */
  readonly hosts: string[];
  /** Rejects when a member ends without being stopped. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/**
 * Starts an etcd (`CARILLON_ETCD_SERVER`, else the one in PATH), or a cluster of several, on free loopback ports, and
 * waits until all of them serve.
 * @throws CarillonError UNSUPPORTED without an etcd, ETCD_UNAVAILABLE when one ends, TIMEOUT when one is silent
 */
export async function startEtcd(options: EtcdProcessOptions): Promise<EtcdCluster> {
  for (let attempt = 1; ; attempt += 1) {
    const members = await planMembers(options, attempt);
    const stop = async () => {
      await Promise.all(members.map((member) => member.stop()));
    };
    try {
      await Promise.all(members.map((member) => member.start()));
      const died = Promise.race(members.map((member) => member.died));
      died.catch(() => undefined);
      return { members, hosts: members.map(({ url }) => url), died, stop };
    } catch (error) {
      await stop();
      const taken = members.some(({ log }) => log.includes('address already in use'));
      if (!taken || attempt === ATTEMPTS) throw error;
    }
  }
}

async function planMembers(options: EtcdProcessOptions, attempt: number): Promise<EtcdMember[]> {
  const ports = await distinctPorts(2 * (options.members ?? 1));
  const scheme = options.settings?.['cert-file'] === undefined ? 'http' : 'https';
  const plans = Array.from({ length: options.members ?? 1 }, (_, i) => ({
    name: `etcd${i + 1}`,
    client: `${scheme}://127.0.0.1:${ports[2 * i]}`,
    peer: `http://127.0.0.1:${ports[2 * i + 1]}`,
  }));
  const cluster = plans.map(({ name, peer }) => `${name}=${peer}`).join(',');
  const members: EtcdMember[] = [];
  for (const { name, client, peer } of plans) {
    const dir = join(options.dir, attempt === 1 ? name : `${name}-${attempt}`);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const flags = {
      name,
      'data-dir': dir,
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': cluster,
      'initial-cluster-state': 'new',
      'auto-compaction-mode': 'periodic',
      'auto-compaction-retention': '1h',
      ...options.settings,
    };
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}=${value}`]);
    members.push(new EtcdMember(client, dir, args, options));
  }
  return members;
}

async function distinctPorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add((await freePort(0)) ?? 0);
  return [...ports];
}

/** Promise.withResolvers, which Node 20 has not. */
function deferred() {
  let resolve: () => void = () => undefined;
  let reject: (error: CarillonError) => void = () => undefined;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

function cannotRun(binary: string, error: NodeJS.ErrnoException, instead: string): CarillonError {
  return new CarillonError('UNSUPPORTED', `${binary} cannot be run: ${error.code ?? error.message}`, {
    field: 'CARILLON_ETCD_SERVER',
    todo: `Install it (apt-get install etcd-server, brew install etcd), ${instead}`,
    cause: error,
  });
}

function endedByItself(url: string, log: string): CarillonError {
  const line =
    log
      .trim()
      .split('\n')
      .findLast((text) => / [CE] \||"level":"(fatal|error|panic)"|error|panic/i.test(text)) ??
    'it says nothing';
  return new CarillonError('ETCD_UNAVAILABLE', `etcd on ${url} ended: ${line.slice(0, 300)}`, {
    todo: 'It needs free ports and room for its data.',
  });
}
