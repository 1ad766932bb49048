import { checkCall } from '../config/call-options.js';
import { checkName } from '../config/scheduler-options.js';
import type { RedisConnectionOptions } from '../redis/connection.js';
import { defaultNamespace } from '../redis/layout.js';
import type { ScriptChoices } from '../redis/script-source.js';

/** Options of an {@link Admin}. */
export interface AdminOptions {
  /** Where Redis is: a URL, ioredis options or an ioredis client. Defaults to `redis://127.0.0.1:6379`. */
  connection?: RedisConnectionOptions;
  /** BullMQ's key prefix. Defaults to `bull`. */
  prefix?: string;
  /** Defaults to `carillon` for the prefix `bull`, else `carillon-<prefix>`. */
  namespace?: string;
  /** For test kits only: which clock the scripts are loaded with. */
  scripts?: ScriptChoices;
}

export interface ResolvedAdminOptions {
  connection: RedisConnectionOptions;
  prefix: string;
  namespace: string;
  scripts: ScriptChoices;
}

const KNOWN = ['connection', 'prefix', 'namespace', 'scripts'];

/** Defaults, then checks, then frozen. @throws CarillonError INVALID_OPTION */
export function resolveAdminOptions(options: AdminOptions): Readonly<ResolvedAdminOptions> {
  checkCall(options, KNOWN);
  const prefix = checkName(options.prefix ?? 'bull', 'prefix');
  return Object.freeze({
    connection: options.connection ?? 'redis://127.0.0.1:6379',
    prefix,
    namespace: checkName(options.namespace ?? defaultNamespace(prefix), 'namespace'),
    scripts: options.scripts ?? {},
  });
}
