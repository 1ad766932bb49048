import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { distance } from 'fastest-levenshtein';
import { checkObject } from '../config/check.js';
import type { EtcdOptions } from '../config/etcd-options.js';
import { checkName, checkPrefix } from '../config/scheduler-options.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { CarillonError } from '../domain/errors.js';
import type { RedisConnectionOptions } from '../redis/connection.js';
import { defaultNamespace } from '../redis/layout.js';
import { ETCD_VARIABLES, etcdSettings } from './etcd-flags.js';

/** What every command is told, from wherever it was said. */
export interface Settings {
  redis: RedisConnectionOptions;
  prefix: string;
  namespace: string;
  /** Where etcd is, for those who speak with it; checked. */
  etcd: EtcdOptions | undefined;
  json: boolean;
  /** The file's part for `scheduler`, unchecked but for its keys. */
  scheduler: Record<string, unknown>;
  /** The file's part for `dev`. */
  dev: Record<string, unknown>;
}

/** What a scheduler may be told besides, and the variable of each. */
export const SCHEDULER_SETTINGS = {
  ttl: { variable: 'CARILLON_TTL', kind: 'text' },
  pollInterval: { variable: 'CARILLON_POLL_INTERVAL', kind: 'text' },
  duplicateWindow: { variable: 'CARILLON_DUPLICATE_WINDOW', kind: 'text' },
  memoryHeadroom: { variable: 'CARILLON_MEMORY_HEADROOM', kind: 'number' },
  allowVolatile: { variable: 'CARILLON_ALLOW_VOLATILE', kind: 'flag' },
  takeOver: { variable: 'CARILLON_TAKE_OVER', kind: 'flag' },
  partitions: { variable: 'CARILLON_PARTITIONS', kind: 'number' },
  settle: { variable: 'CARILLON_SETTLE', kind: 'text' },
  onEtcdLoss: { variable: 'CARILLON_ON_ETCD_LOSS', kind: 'text' },
  instanceId: { variable: 'CARILLON_INSTANCE_ID', kind: 'text' },
  onDead: { variable: 'CARILLON_ON_DEAD', kind: 'text' },
} as const;

const DEFAULT_REDIS = 'redis://127.0.0.1:6379';
const FILE_KEYS = ['redis', 'prefix', 'namespace', 'etcd', 'scheduler', 'dev'];
const ETCD_KEYS = ['hosts', 'tls', 'username', 'password', 'callTimeout'];
const DEV_KEYS = ['port', 'queue', 'instances', 'etcd', 'partitions'];
/** Every variable that some part of Carillon reads. */
const VARIABLES = [
  'CARILLON_REDIS_URL',
  'CARILLON_PREFIX',
  'CARILLON_NAMESPACE',
  'CARILLON_CONFIG',
  'CARILLON_LOG_LEVEL',
  'CARILLON_DATABASE_URL',
  'CARILLON_REDIS_SERVER',
  'CARILLON_ETCD_SERVER',
  ...ETCD_VARIABLES,
  ...Object.values(SCHEDULER_SETTINGS).map(({ variable }) => variable),
];

/** Letters. Farther ones may be other programs' own: CARILLON_REDIS_PORT is docker-compose.yml's. */
const SLIP = 2;

type Environment = Readonly<Record<string, string | undefined>>;

/** The settings of a command that is being run. @throws CarillonError INVALID_OPTION */
export function settingsOf(command: Command): Settings {
  return resolveSettings(command.optsWithGlobals(), process.env);
}

/**
 * Flags over environment over file over defaults; each is checked, and a word that nobody reads is refused.
 * @throws CarillonError INVALID_OPTION
 */
export function resolveSettings(flags: Record<string, unknown>, env: Environment): Settings {
  refuseSlips(env);
  const path = textOf(flags.config) ?? variable(env, 'CARILLON_CONFIG');
  const file = path === undefined ? {} : readConfig(path);
  const prefix = checkPrefix(
    textOf(flags.prefix) ?? variable(env, 'CARILLON_PREFIX') ?? file.prefix ?? 'bull',
  );
  return {
    redis:
      textOf(flags.redis) ??
      variable(env, 'CARILLON_REDIS_URL') ??
      variable(env, 'REDIS_URL') ??
      (file.redis as RedisConnectionOptions | undefined) ??
      DEFAULT_REDIS,
    prefix,
    namespace: checkName(
      textOf(flags.namespace) ??
        variable(env, 'CARILLON_NAMESPACE') ??
        file.namespace ??
        defaultNamespace(prefix),
      'namespace',
    ),
    etcd: etcdSettings(flags, env, part(file.etcd, 'etcd', ETCD_KEYS)),
    json: flags.json === true,
    scheduler: part(file.scheduler, 'scheduler', Object.keys(SCHEDULER_SETTINGS)),
    dev: part(file.dev, 'dev', DEV_KEYS),
  };
}

/** A scheduler's own settings by the same precedence; what nobody said is left to its defaults. */
export function schedulerSettings(
  flags: Record<string, unknown>,
  env: Environment,
  file: Record<string, unknown>,
): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, { variable: key, kind }] of Object.entries(SCHEDULER_SETTINGS)) {
    const said = variable(env, key);
    found[name] = flags[name] ?? (said === undefined ? file[name] : fromText(key, said, kind));
    if (found[name] === undefined) delete found[name];
  }
  return found;
}

/** Text of the environment, as the option's type. */
function fromText(key: string, text: string, kind: 'text' | 'number' | 'flag'): unknown {
  if (kind === 'number') return Number(text);
  if (kind === 'text') return /^\d+$/.test(text) ? Number(text) : text;
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw new CarillonError('INVALID_OPTION', `${key} must be true or false`, {
    field: key,
    given: text,
    todo: 'Set it to true or false, or unset it.',
  });
}

/** A variable that looks like a slip of one of ours would be ignored for ever. */
function refuseSlips(env: Environment): void {
  for (const name of Object.keys(env)) {
    if (!name.startsWith('CARILLON_') || name.startsWith('CARILLON_TEST_') || VARIABLES.includes(name))
      continue;
    const meant = VARIABLES.find((known) => distance(name, known) <= SLIP);
    if (meant === undefined) continue;
    throw new CarillonError('INVALID_OPTION', `the variable ${name} is none that Carillon reads`, {
      field: name,
      todo: `Did you mean ${meant}? Otherwise unset it.`,
    });
  }
}

function readConfig(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new CarillonError('INVALID_OPTION', `the settings file ${path} cannot be read`, {
      field: 'config',
      todo: 'Give the path of a JSON file.',
      cause,
    });
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new CarillonError(
      'INVALID_OPTION',
      `the settings file ${path} is no JSON: ${cause instanceof Error ? cause.message : String(cause)}`,
      { field: 'config', todo: 'Write { "redis": "redis://…", "prefix": "bull" }.', cause },
    );
  }
  const file = checkObject('config', parsed);
  rejectUnknown(file, FILE_KEYS);
  return file;
}

function part(value: unknown, name: string, known: readonly string[]): Record<string, unknown> {
  if (value === undefined) return {};
  const found = checkObject(name, value);
  rejectUnknown(found, known, `${name}.`);
  return found;
}

/** An empty variable is one that was not set. */
function variable(env: Environment, name: string): string | undefined {
  return textOf(env[name]);
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
