import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Keys } from '../../src/redis/keys.js';
import { readScript, type ScriptChoices } from '../../src/redis/script-source.js';
import { packageRoot } from '../../src/support/package-root.js';
import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import type { LeaderCall } from './history-checker.js';

/** What changes a key of a bucket; all else that leaders' scripts call only reads. */
const WRITES = new Set(
  'HSET HSETNX HDEL HINCRBY SET ZADD ZREM ZINCRBY ZREMRANGEBYRANK ZREMRANGEBYSCORE DEL UNLINK RENAME XADD'.split(
    ' ',
  ),
);

/** Of a script that leaders call: its name, and which argument holds the claimed ranges. */
interface LeaderScript {
  name: string;
  owned: number;
}

/**
 * Leaders' scripts as a Redis carried them out, read from its MONITOR: the order is Redis' own, what a script claims and
 * what it changes both stand there, and nothing in production knows of being watched. A call for which the server had
 * no text (NOSCRIPT) stands there too, as one that changed nothing.
 */
export class ScriptHistory {
  readonly #calls = new Map<string, LeaderCall[]>();
  readonly #scripts = leaderScripts();
  #running: { call: LeaderCall; tag: string } | undefined;
  #seen = '';

  private constructor(socket: Socket) {
    // MONITOR escapes every byte that could end a line.
    const lines = createInterface({ input: socket.setEncoding('latin1') });
    lines.on('line', (line) => this.#take(line));
  }

  /** Records from now on. Ends with the test or file. */
  static async record(url: string): Promise<ScriptHistory> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    const history = new ScriptHistory(socket);
    onCleanup(`MONITOR of ${url}`, () => {
      socket.destroy();
    });
    socket.write('MONITOR\r\n');
    await eventually(() => history.#seen === '+OK', { every: 2 });
    return history;
  }

  /** What leaders of a namespace did so far. */
  callsOf(namespace: string): readonly LeaderCall[] {
    return this.#calls.get(new Keys(namespace).tag) ?? [];
  }

  #take(line: string): void {
    this.#seen = line;
    const [, at, client, command] = /^\+(\d+\.\d+) \[\d+ (\S+)\] "(\w+)"/.exec(line) ?? [];
    if (client === 'lua') {
      if (this.#running !== undefined && WRITES.has(command ?? '')) this.#wrote(argumentsOf(line));
      return;
    }
    this.#running = undefined;
    if (command !== 'EVALSHA' && command !== 'EVAL') return;
    const args = argumentsOf(line);
    const script = this.#scripts.get(args[1] ?? '');
    if (script === undefined) return;
    // EVALSHA, the script, the number of keys, the keys.
    const first = 3 + Number(args[2]);
    const tag = args[first] ?? '';
    const claims = claimsIn(Buffer.from(args[first + script.owned] ?? '', 'latin1'));
    const call = {
      at: Number(at) * 1000,
      client: client ?? '',
      script: script.name,
      claims,
      raised: [],
      wrote: [],
    };
    const calls = this.#calls.get(tag) ?? [];
    this.#calls.set(tag, calls);
    calls.push(call);
    this.#running = { call, tag };
  }

  #wrote([, key = '', ...rest]: string[]): void {
    const { call, tag } = this.#running as { call: LeaderCall; tag: string };
    if (!key.startsWith(`${tag}:`)) return;
    const [bucket = '', what] = key.slice(tag.length + 1).split(':');
    if (bucket === 'fence') {
      for (let i = 0; i < rest.length; i += 2) call.raised.push(Number(rest[i]));
    } else if (what !== undefined && /^\d+$/.test(bucket) && !call.wrote.includes(Number(bucket))) {
      call.wrote.push(Number(bucket));
    }
  }
}

/** The words of a MONITOR line behind its head, unescaped; bytes as latin1. */
export function argumentsOf(line: string): string[] {
  const SIGNS: Record<string, string> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word]) =>
    (word ?? '').replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex: string | undefined, sign: string) =>
      hex === undefined ? (SIGNS[sign] ?? sign) : String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  );
}

/** As src/redis/leader-scripts.ts packs them: `>B first, B last, I6 served from, I2 fence length, fence` a range. */
function claimsIn(owned: Buffer): LeaderCall['claims'] {
  const claims = [];
  for (let at = 0; at + 10 <= owned.length; ) {
    const end = at + 10 + owned.readUInt16BE(at + 8);
    claims.push({
      first: owned.readUInt8(at),
      last: owned.readUInt8(at + 1),
      fence: owned.toString('utf8', at + 10, end),
    });
    at = end;
  }
  return claims;
}

/** By SHA1, and by text for the EVAL that brings it; with the fence check and without. */
function leaderScripts(): Map<string, LeaderScript> {
  const scripts = new Map<string, LeaderScript>();
  const choices: ScriptChoices[] = [{ fence: 'on' }, { fence: 'off' }];
  for (const file of readdirSync(join(packageRoot(), 'lua')).filter((name) => name.endsWith('.lua'))) {
    for (const choice of choices) {
      const name = file.slice(0, -'.lua'.length);
      const { header, variants } = readScript(name, choice);
      const owned = header.args.findIndex((text) => / owned bytes$/.test(text));
      if (owned === -1) continue;
      for (const { sha, text } of Object.values(variants)) {
        scripts.set(sha, { name, owned });
        scripts.set(Buffer.from(text).toString('latin1'), { name, owned });
      }
    }
  }
  return scripts;
}
