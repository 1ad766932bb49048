import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resolveSettings, schedulerSettings } from '../../../src/cli/settings.js';

function configFile(content: unknown): string {
  const dir = mkdtempSync(join(tmpdir(), 'carillon-config-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'carillon.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

describe('flags over environment over file over defaults', () => {
  const file = { redis: 'redis://file:1', prefix: 'file', namespace: 'file-ns' };
  const env = {
    CARILLON_REDIS_URL: 'redis://env:1',
    REDIS_URL: 'redis://general:1',
    CARILLON_PREFIX: 'env',
    CARILLON_NAMESPACE: 'env-ns',
  };
  const flags = { redis: 'redis://flag:1', prefix: 'flag', namespace: 'flag-ns' };

  test('nothing said', () => {
    expect(resolveSettings({}, {})).toEqual({
      redis: 'redis://127.0.0.1:6379',
      prefix: 'bull',
      namespace: 'carillon',
      json: false,
      scheduler: {},
      dev: {},
    });
  });

  test('the file', () => {
    expect(resolveSettings({ config: configFile(file) }, {})).toMatchObject(file);
  });

  test('the environment over the file, which it may name', () => {
    const CARILLON_CONFIG = configFile({ ...file, scheduler: { ttl: '20s' } });
    expect(resolveSettings({}, { ...env, CARILLON_CONFIG })).toMatchObject({
      redis: 'redis://env:1',
      prefix: 'env',
      namespace: 'env-ns',
      scheduler: { ttl: '20s' },
    });
  });

  test('the flags over all', () => {
    expect(resolveSettings({ ...flags, config: configFile(file), json: true }, env)).toMatchObject({
      ...flags,
      json: true,
    });
  });

  test('REDIS_URL where ours is not set, or is empty', () => {
    const { REDIS_URL } = env;
    expect(resolveSettings({}, { REDIS_URL, CARILLON_REDIS_URL: '' }).redis).toBe(REDIS_URL);
  });

  test('a namespace follows the prefix, wherever that was said', () => {
    expect(resolveSettings({}, { CARILLON_PREFIX: 'shop' }).namespace).toBe('carillon-shop');
  });

  test('a file may describe Redis by ioredis’ options', () => {
    const redis = { host: '10.0.0.5', port: 6380, tls: {} };
    expect(resolveSettings({ config: configFile({ redis }) }, {}).redis).toEqual(redis);
  });
});

describe('what nobody reads is refused', () => {
  test.for([
    [{ redsi: 'x' }, { field: 'redsi', todo: 'Write redis.' }],
    [{ scheduler: { tll: '5s' } }, { field: 'scheduler.tll', todo: 'Write ttl.' }],
    [{ dev: { ports: 1 } }, { field: 'dev.ports', todo: 'Write port.' }],
    [{ scheduler: 5 }, { field: 'scheduler' }],
    [[], { field: 'config' }],
    ['{', { field: 'config', message: expect.stringContaining('is no JSON') }],
    [{ prefix: '' }, { field: 'prefix' }],
    [{ namespace: 'a{b}' }, { field: 'namespace' }],
  ] as const)('%o', ([content, error]) => {
    const config = configFile(content);
    expect(() => resolveSettings({ config }, {})).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', ...error }),
    );
  });

  test('a file that is not there', () => {
    expect(() => resolveSettings({ config: '/nowhere/carillon.json' }, {})).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field: 'config' }),
    );
  });

  test('a variable that is a slip of one of ours; others are other programs’', () => {
    expect(() => resolveSettings({}, { CARILLON_NAMSPACE: 'x' })).toThrow(
      expect.objectContaining({ todo: 'Did you mean CARILLON_NAMESPACE? Otherwise unset it.' }),
    );
    // What Kubernetes sets for a service of the name carillon.
    const service = { CARILLON_SERVICE_HOST: '10.0.0.1', CARILLON_PORT: 'tcp://x', CARILLON_REDIS_PORT: '1' };
    expect(resolveSettings({}, service).namespace).toBe('carillon');
  });
});

describe('a scheduler’s own settings', () => {
  test('flags over environment over file; unsaid ones are left out', () => {
    const env = { CARILLON_TTL: '20s', CARILLON_POLL_INTERVAL: '200', CARILLON_MEMORY_HEADROOM: '1024' };
    const file = { ttl: '30s', pollInterval: '1s', duplicateWindow: '2h', takeOver: true };
    expect(schedulerSettings({ ttl: 10_000, instanceId: undefined }, env, file)).toEqual({
      ttl: 10_000,
      pollInterval: 200,
      duplicateWindow: '2h',
      memoryHeadroom: 1024,
      takeOver: true,
    });
  });

  test('a flag of the environment is true or false', () => {
    expect(schedulerSettings({}, { CARILLON_ALLOW_VOLATILE: '1', CARILLON_TAKE_OVER: 'false' }, {})).toEqual({
      allowVolatile: true,
      takeOver: false,
    });
    expect(() => schedulerSettings({}, { CARILLON_ALLOW_VOLATILE: 'yes' }, {})).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field: 'CARILLON_ALLOW_VOLATILE' }),
    );
  });
});
