import { type Duration, parseDuration } from '../domain/durations.js';
import { checkObject, refuse } from './check.js';
import { rejectUnknown } from './unknown-options.js';

/** Where etcd is, and how to speak with it. */
export interface EtcdOptions {
  /** Client URLs of the members: `'http://10.0.0.1:2379'`, a list of them, or one text with commas. All http or all https. */
  hosts: string | readonly string[];
  /** Paths of PEM files, or PEM texts. `ca` defaults to Node's own authorities; `cert` and `key` are ours. */
  tls?: { ca?: string; cert?: string; key?: string };
  username?: string;
  password?: string;
  /** The longest wait for an answer of one member; then the next is asked. Defaults to 1 s; 50 ms to 10 s. */
  callTimeout?: Duration;
}

export interface ResolvedEtcdOptions {
  hosts: readonly string[];
  tls: { ca?: string; cert?: string; key?: string } | undefined;
  username: string | undefined;
  password: string | undefined;
  callTimeout: number;
}

const KNOWN = ['hosts', 'tls', 'username', 'password', 'callTimeout'];
const TLS_KNOWN = ['ca', 'cert', 'key'];

/** Defaults, then checks, then frozen. @throws CarillonError INVALID_OPTION and what durations throw. */
export function resolveEtcdOptions(value: unknown, field = 'etcd'): Readonly<ResolvedEtcdOptions> {
  const options = checkObject(field, value);
  rejectUnknown(options, KNOWN, `${field}.`);
  const hosts = checkHosts(options.hosts, `${field}.hosts`);
  const tls = checkTls(options.tls, `${field}.tls`);
  if (tls !== undefined && hosts.some((host) => host.startsWith('http:'))) {
    refuse(`${field}.tls`, options.tls, 'is of no use with http://', 'Write https:// in hosts.');
  }
  const username = checkText(options.username, `${field}.username`);
  const password = checkText(options.password, `${field}.password`);
  if ((username === undefined) !== (password === undefined)) {
    const missing = username === undefined ? 'username' : 'password';
    refuse(
      `${field}.${missing}`,
      undefined,
      'is missing',
      'Give both a username and a password, or neither.',
    );
  }
  return Object.freeze({
    hosts,
    tls,
    username,
    password,
    callTimeout: parseDuration(options.callTimeout ?? 1000, {
      field: `${field}.callTimeout`,
      min: 50,
      max: 10_000,
    }),
  });
}

function checkHosts(value: unknown, field: string): string[] {
  const list = typeof value === 'string' ? value.split(',') : value;
  const todo = 'Write the client URLs of the members: http://10.0.0.1:2379,http://10.0.0.2:2379.';
  if (!Array.isArray(list) || list.length === 0) refuse(field, value, 'names no etcd member', todo);
  const hosts = list.map((host: unknown) => checkHost(host, field, todo));
  if (new Set(hosts.map((host) => host.split(':')[0])).size > 1) {
    refuse(field, value, 'mixes http and https', 'Use https for all members, or for none.');
  }
  return [...new Set(hosts)];
}

function checkHost(value: unknown, field: string, todo: string): string {
  if (typeof value !== 'string') refuse(field, value, 'must hold texts', todo);
  const text = value.trim();
  const url = URL.canParse(text.includes('://') ? text : `http://${text}`)
    ? new URL(text.includes('://') ? text : `http://${text}`)
    : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.hostname === '' ||
    !/^\/?$/.test(url.pathname)
  ) {
    refuse(field, value, 'holds what is no URL of an etcd member', todo);
  }
  if (url.username !== '' || url.password !== '') {
    refuse(field, 'a URL with a password', 'must not hold a user', 'Give etcd.username and etcd.password.');
  }
  return `${url.protocol}//${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`;
}

function checkTls(value: unknown, field: string): ResolvedEtcdOptions['tls'] {
  if (value === undefined) return undefined;
  const tls = checkObject(field, value);
  rejectUnknown(tls, TLS_KNOWN, `${field}.`);
  const found: { ca?: string; cert?: string; key?: string } = {};
  for (const name of ['ca', 'cert', 'key'] as const) {
    const text = checkText(tls[name], `${field}.${name}`);
    if (text !== undefined) found[name] = text;
  }
  if ((found.cert === undefined) !== (found.key === undefined)) {
    refuse(field, Object.keys(found), 'needs both cert and key, or neither', 'Give the other one too.');
  }
  return found;
}

function checkText(value: unknown, field: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  // Not shown: it may be a secret.
  return refuse(field, typeof value, 'must be a text', 'Write it in quotes.');
}
