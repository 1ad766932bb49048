import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CarillonError } from '../domain/errors.js';
import { packageRoot, resolvePackageDir } from '../support/package-root.js';

/** What may stand behind a script's `-- flags`: how Redis treats it at `maxmemory`. */
export type ScriptFlag = 'deny-oom' | 'allow-oom' | 'read-only';

/** Includes that are chosen when a script is loaded, never by a switch inside it. */
export interface ScriptChoices {
  /** `virtual` reads the test kit's clock instead of the server's. */
  clock?: 'server' | 'virtual';
  /** `off` is for fault tests: each script must be right without its fence too. */
  fence?: 'on' | 'off';
  /** Text to use instead of an include of that name (`bullmq/storeJob`), for tests of what BullMQ may raise. */
  replace?: Readonly<Record<string, string>>;
}

/** A script's machine-read header. */
export interface ScriptHeader {
  name: string;
  purpose: string;
  flags: ScriptFlag[];
  keys: string[];
  args: string[];
  returns: string;
  cost: string;
}

/** One loadable script: a text for each of its flags. */
export interface Script {
  readonly header: ScriptHeader;
  readonly variants: Readonly<Partial<Record<ScriptFlag, { readonly text: string; readonly sha: string }>>>;
}

const INCLUDE = /^[ \t]*--- @include "([^"]+)"[ \t]*$/gm;
const BULLMQ = 'bullmq/';
const SHEBANG: Record<ScriptFlag, string> = {
  'deny-oom': '#!lua\n',
  'allow-oom': '#!lua flags=allow-oom\n',
  'read-only': '#!lua flags=no-writes\n',
};

/** Where the installed BullMQ keeps its Lua includes. */
export function bullmqIncludeFile(name: string): string {
  return join(resolvePackageDir('bullmq'), 'dist', 'cjs', 'commands', 'includes', `${name}.lua`);
}

/** A script of ours with its includes resolved, headers checked, and one text a flag. */
export function readScript(name: string, choices: ScriptChoices = {}): Script {
  const source = readLua(join(packageRoot(), 'lua', `${name}.lua`), name);
  const header = parseHeader(name, source);
  const body = resolveIncludes(source, name, choices, new Set(), '');
  const variants: Partial<Record<ScriptFlag, { text: string; sha: string }>> = {};
  for (const flag of header.flags) {
    const text = SHEBANG[flag] + body;
    variants[flag] = { text, sha: createHash('sha1').update(text).digest('hex') };
  }
  return { header, variants };
}

/** @throws CarillonError BAD_SCRIPT when a line is missing or not of the form that the loader reads. */
export function parseHeader(file: string, source: string): ScriptHeader {
  const line = (field: string): string => {
    const found = source.match(new RegExp(`^-- ${field} +(.+)$`, 'm'))?.[1];
    if (found === undefined)
      throw new CarillonError('BAD_SCRIPT', `lua/${file}.lua has no "-- ${field}" line`);
    return found.trim();
  };
  const list = (field: string): string[] => line(field).split('; ');
  const header: ScriptHeader = {
    name: line('name'),
    purpose: line('purpose'),
    flags: line('flags').split(', ') as ScriptFlag[],
    keys: list('keys'),
    args: list('args'),
    returns: line('returns'),
    cost: line('cost'),
  };
  if (header.name !== file) {
    throw new CarillonError('BAD_SCRIPT', `lua/${file}.lua calls itself ${header.name}`);
  }
  const unknown = header.flags.find((flag) => !(flag in SHEBANG));
  if (unknown !== undefined)
    throw new CarillonError('BAD_SCRIPT', `lua/${file}.lua has the unknown flag ${unknown}`);
  return header;
}

function readLua(path: string, name: string): string {
  if (!existsSync(path)) {
    throw new CarillonError('BAD_SCRIPT', `the Lua source ${name} is not there`, {
      todo: name.startsWith(BULLMQ) ? 'Install a supported bullmq (>=6.7 <7).' : 'Reinstall carillon.',
    });
  }
  return readFileSync(path, 'utf8');
}

/** BullMQ's own files name their includes without a folder; `folder` says whose they are. Each is taken once. */
function resolveIncludes(
  source: string,
  from: string,
  choices: ScriptChoices,
  taken: Set<string>,
  folder: string,
): string {
  return source.replace(INCLUDE, (_line, written: string) => {
    const name = folder + written;
    if (taken.has(name)) return '';
    taken.add(name);
    const text = choices.replace?.[name] ?? readInclude(name, from, choices);
    return resolveIncludes(text, name, choices, taken, name.startsWith(BULLMQ) ? BULLMQ : '');
  });
}

function readInclude(name: string, from: string, choices: ScriptChoices): string {
  if (name.startsWith(BULLMQ)) return readLua(bullmqIncludeFile(name.slice(BULLMQ.length)), name);
  let file = name;
  if (name === 'clock' && choices.clock === 'virtual') file = 'clock-virtual';
  if (name === 'fence' && choices.fence === 'off') file = 'fence-off';
  return readLua(join(packageRoot(), 'lua', 'lib', `${file}.lua`), `${file}, included by ${from}`);
}
