import { describe, expect, test } from 'vitest';
import { judgeServer, requireSafeServer, type ServerFacts } from '../../../src/redis/server-check.js';

const good: ServerFacts = { version: '7.0.15', policy: 'noeviction', aof: true, role: 'master' };

describe('a Redis is judged by what INFO tells', () => {
  test.each<[string, Partial<ServerFacts>]>([
    ['as it should be', {}],
    ['newer', { version: '8.2.1' }],
    ['two digits', { version: '10.0.0' }],
    ['one that does not tell its policy', { policy: '' }],
  ])('good: %s', (_what, over) => {
    expect(judgeServer({ ...good, ...over })).toEqual([]);
  });

  test.each<[string, Partial<ServerFacts>, string]>([
    ['version', { version: '6.2.14' }, 'Redis is 6.2.14: Carillon needs 7.0 or later, so upgrade it.'],
    [
      'eviction',
      { policy: 'volatile-ttl' },
      'Redis’ maxmemory-policy is volatile-ttl, which deletes jobs under memory pressure: set it to noeviction.',
    ],
    [
      'persistence',
      { aof: false },
      'Redis keeps no append-only file, so a restart loses jobs: set appendonly to yes.',
    ],
  ])('bad: %s, in one sentence with the cure', (check, over, sentence) => {
    expect(judgeServer({ ...good, ...over })).toEqual([{ check, sentence }]);
  });

  test('every fault is named at once; an old version is refused even where jobs may be lost', () => {
    const faults = judgeServer({ version: '5.0.0', policy: 'allkeys-lru', aof: false, role: 'master' });
    expect(faults.map(({ check }) => check)).toEqual(['version', 'eviction', 'persistence']);
    expect(() => requireSafeServer(faults, false)).toThrow(/5\.0\.0.*allkeys-lru.*append-only/);
    expect(() => requireSafeServer(faults, true)).toThrow(
      /^Redis is 5\.0\.0[^A-Z]*Carillon needs[^.]*\.0 or later, so upgrade it\.$/,
    );
    expect(() => requireSafeServer(faults.slice(1), true)).not.toThrow();
  });
});
