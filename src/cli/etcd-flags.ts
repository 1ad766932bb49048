import type { Command } from 'commander';
import type { EtcdOptions } from '../config/etcd-options.js';
import { resolveEtcdOptions } from '../config/etcd-options.js';

/** How each of etcd's settings may be said besides the settings file, where they stand under "etcd". */
const ETCD_SETTINGS = [
  { flag: 'etcd', variable: 'CARILLON_ETCD', path: ['hosts'] },
  { flag: 'etcdCa', variable: 'CARILLON_ETCD_CA', path: ['tls', 'ca'] },
  { flag: 'etcdCert', variable: 'CARILLON_ETCD_CERT', path: ['tls', 'cert'] },
  { flag: 'etcdKey', variable: 'CARILLON_ETCD_KEY', path: ['tls', 'key'] },
  { flag: 'etcdUser', variable: 'CARILLON_ETCD_USER', path: ['username'] },
  { flag: 'etcdPassword', variable: 'CARILLON_ETCD_PASSWORD', path: ['password'] },
] as const;

export const ETCD_VARIABLES = ETCD_SETTINGS.map(({ variable }) => variable);

/** Adds the flags of whatever speaks with etcd. */
export function addEtcdFlags(command: Command): Command {
  return command
    .option('--etcd <urls>', 'the client URLs of the etcd members, with commas')
    .option('--etcd-ca <file>', 'the authority that signed their certificates, PEM')
    .option('--etcd-cert <file>', 'our certificate, PEM')
    .option('--etcd-key <file>', 'its key, PEM')
    .option('--etcd-user <name>', 'a user of etcd')
    .option('--etcd-password <text>', 'its password; better as CARILLON_ETCD_PASSWORD');
}

/**
 * Flags over environment over file; undefined when none of them names etcd.
 * @throws CarillonError INVALID_OPTION
 */
export function etcdSettings(
  flags: Record<string, unknown>,
  env: Readonly<Record<string, string | undefined>>,
  file: Record<string, unknown>,
): EtcdOptions | undefined {
  const found: Record<string, unknown> = structuredClone(file);
  for (const { flag, variable, path } of ETCD_SETTINGS) {
    const said = flags[flag] ?? (env[variable] || undefined);
    if (said === undefined) continue;
    const [first, second] = path;
    if (second === undefined) found[first] = said;
    else found[first] = { ...(found[first] as object | undefined), [second]: said };
  }
  if (Object.keys(found).length === 0) return undefined;
  resolveEtcdOptions(found);
  return found as unknown as EtcdOptions;
}
