import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { addEtcdFlags, etcdSettings } from '../../src/cli/etcd-flags.js';
import { resolveSettings } from '../../src/cli/settings.js';
import { resolveEtcdOptions } from '../../src/config/etcd-options.js';
import { resolveSchedulerOptions, type SchedulerOptions } from '../../src/config/scheduler-options.js';

const etcd = { hosts: 'http://127.0.0.1:2379' };

function refusal(options: SchedulerOptions) {
  try {
    resolveSchedulerOptions(options);
  } catch (error) {
    return error as { code: string; field: string; message: string; todo: string };
  }
  throw new Error('it was accepted');
}

describe('of a scheduler', () => {
  test('defaults with etcd: 16 partitions, settle 2 s, stop when etcd is gone', () => {
    expect(resolveSchedulerOptions({ etcd })).toMatchObject({
      etcd: { hosts: ['http://127.0.0.1:2379'], callTimeout: 1000 },
      partitions: 16,
      settle: 2000,
      ttl: 10_000,
      onEtcdLoss: 'stop',
    });
    expect(resolveSchedulerOptions({}).etcd).toBeUndefined();
  });

  test.each([
    ['partitions', { partitions: 8 }],
    ['settle', { settle: '1s' }],
    ['onEtcdLoss', { onEtcdLoss: 'continue' as const }],
  ])('%s without etcd is refused by one sentence', (field, options) => {
    const error = refusal(options);
    expect(error).toMatchObject({ code: 'INVALID_OPTION', field });
    expect(error.message).toBe(
      `${field} needs coordination by etcd: without it one instance leads everything and others stand by`,
    );
    expect(error.todo).toContain('etcd: { hosts }');
  });

  test.each([
    ['ttl', { ttl: '4s' }, 'shorter than 5s'],
    ['ttl', { ttl: '14s' }, 'a fail-over may take 31000 ms, and the default grace of schedules is 30000 ms'],
    ['partitions', { partitions: 0 }, 'between 1 and 256'],
    ['partitions', { partitions: 257 }, 'between 1 and 256'],
    ['partitions', { partitions: 2.5 }, 'a whole number'],
    ['onEtcdLoss', { onEtcdLoss: 'wait' as 'stop' }, 'none of its values'],
    ['settle', { settle: '2m' }, 'longer than'],
    ['takeOver', { takeOver: true }, 'without etcd'],
    ['etcd.callTimeout', { ttl: '5s', etcd: { ...etcd, callTimeout: '2s' } }, 'a third of ttl'],
  ])('%s is refused: %o', (field, options, text) => {
    const error = refusal({ etcd, ...options });
    expect(error.field).toBe(field);
    expect(error.message).toContain(text);
    expect(error.todo).toBeTruthy();
  });

  test('the longest ttl with etcd is the one that the refusal names', () => {
    expect(refusal({ etcd, ttl: '14s' }).todo).toBe('Write 13000 ms or less.');
    expect(resolveSchedulerOptions({ etcd, ttl: 13_000 }).ttl).toBe(13_000);
    // etcd's leases are of whole seconds: this one would be of 14.
    expect(refusal({ etcd, ttl: 13_001 }).message).toContain('may take 31000 ms');
    expect(resolveSchedulerOptions({ ttl: '14s' }).ttl).toBe(14_000);
  });
});

describe('of etcd', () => {
  test.each([
    ['a:2379, http://b', ['http://a:2379', 'http://b:80']],
    [['https://a:2379/', 'https://a:2379'], ['https://a:2379']],
    ['http://[::1]:2379', ['http://[::1]:2379']],
  ])('hosts %o', (hosts, expected) => {
    expect(resolveEtcdOptions({ hosts }).hosts).toEqual(expected);
  });

  test.each([
    [{}, 'etcd.hosts'],
    [{ hosts: [] }, 'etcd.hosts'],
    [{ hosts: '' }, 'etcd.hosts'],
    [{ hosts: 'ftp://a:1' }, 'etcd.hosts'],
    [{ hosts: 'http://a:1/v3' }, 'etcd.hosts'],
    [{ hosts: 'http://u:p@a:1' }, 'etcd.hosts'],
    [{ hosts: 'http://a:1,https://b:1' }, 'etcd.hosts'],
    [{ hosts: [1] }, 'etcd.hosts'],
    [{ host: 'http://a:1' }, 'etcd.host'],
    [{ hosts: 'http://a:1', tls: { ca: 'f' } }, 'etcd.tls'],
    [{ hosts: 'https://a:1', tls: { cert: 'f' } }, 'etcd.tls'],
    [{ hosts: 'https://a:1', tls: { pem: 'f' } }, 'etcd.tls.pem'],
    [{ hosts: 'http://a:1', username: 'u' }, 'etcd.password'],
    [{ hosts: 'http://a:1', username: '', password: 'p' }, 'etcd.username'],
    [{ hosts: 'http://a:1', callTimeout: 1 }, 'etcd.callTimeout'],
  ])('refuses %o', (options, field) => {
    expect(() => resolveEtcdOptions(options)).toThrow(expect.objectContaining({ field }));
  });

  test('a password is in no error', () => {
    const secret = 'hunter2';
    for (const options of [{ hosts: `http://u:${secret}@a` }, { hosts: 'http://a', password: secret }]) {
      try {
        resolveEtcdOptions(options);
        throw new Error('it was accepted');
      } catch (error) {
        expect(JSON.stringify({ ...(error as object), text: String(error) })).not.toContain(secret);
      }
    }
  });
});

describe('on the command line', () => {
  const file = { hosts: ['https://file:1'], tls: { ca: 'file-ca' }, callTimeout: '2s' };

  test('flags win over the environment, that over the file; parts are put together', () => {
    const env = { CARILLON_ETCD: 'https://env:1', CARILLON_ETCD_CA: 'env-ca', CARILLON_ETCD_USER: 'u' };
    const flags = { etcd: 'https://flag:1', etcdPassword: 'p' };
    expect(etcdSettings(flags, env, file)).toEqual({
      hosts: 'https://flag:1',
      tls: { ca: 'env-ca' },
      username: 'u',
      password: 'p',
      callTimeout: '2s',
    });
    expect(etcdSettings({}, {}, file)).toEqual(file);
    expect(etcdSettings({}, { CARILLON_ETCD: '' }, {})).toBeUndefined();
  });

  test('what is bad is refused where it is read, also when it is no flag of this command', () => {
    expect(() => etcdSettings({ etcdUser: 'u' }, {}, {})).toThrow(/etcd.hosts names no etcd member/);
    expect(() => resolveSettings({}, { CARILLON_ETCDS: 'http://a' })).toThrow(/CARILLON_ETCDS is none/);
    expect(resolveSettings({}, { CARILLON_ETCD: 'http://a:1' }).etcd).toEqual({ hosts: 'http://a:1' });
  });

  test('every flag is read', () => {
    const command = addEtcdFlags(new Command());
    const args = ['--etcd', 'https://a:1', '--etcd-ca', 'c', '--etcd-cert', 'd', '--etcd-key', 'e'];
    command.parse([...args, '--etcd-user', 'u', '--etcd-password', 'p'], { from: 'user' });
    expect(etcdSettings(command.opts(), {}, {})).toEqual({
      hosts: 'https://a:1',
      tls: { ca: 'c', cert: 'd', key: 'e' },
      username: 'u',
      password: 'p',
    });
  });
});
