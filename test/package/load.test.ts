import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { consumer, consumerNode } from '../support/consumer.js';

/** Runs a module in a fresh Node inside the consumer project and returns the JSON that it prints last. */
function inConsumer(code: string, type: 'module' | 'commonjs' = 'module'): unknown {
  const { status, stdout, stderr } = spawnSync(consumerNode(), [`--input-type=${type}`, '-e', code], {
    cwd: consumer(),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

const LOAD_BOTH = `
  import { createRequire } from 'node:module';
  import { pathToFileURL } from 'node:url';
  import * as esm from 'carillon';
  const require = createRequire(pathToFileURL(process.cwd() + '/index.js'));
  const cjs = require('carillon');
`;

test('both builds export the same names', () => {
  const names = inConsumer(`${LOAD_BOTH}
    console.log(JSON.stringify({ esm: Object.keys(esm).sort(), cjs: Object.keys(cjs).sort() }));`) as {
    esm: string[];
    cjs: string[];
  };
  expect(names.cjs).toEqual(names.esm);
  expect(names.esm).toContain('CarillonError');
});

test('an error of one build is known to the other by its code, not by its class', () => {
  const seen = inConsumer(`${LOAD_BOTH}
    const fromCjs = new cjs.CarillonError('QUOTA', 'too many');
    const fromEsm = new esm.CarillonError('FENCED', 'too late');
    console.log(JSON.stringify({
      instance: fromCjs instanceof esm.CarillonError,
      esmKnows: esm.isCarillonError(fromCjs), cjsKnows: cjs.isCarillonError(fromEsm),
      codes: [fromCjs.code, fromEsm.code], names: [fromCjs.name, fromEsm.name],
      other: esm.isCarillonError(Object.assign(new Error('no'), { code: 'ENOENT' })),
    }));`);
  expect(seen).toEqual({
    instance: false,
    esmKnows: true,
    cjsKnows: true,
    codes: ['QUOTA', 'FENCED'],
    names: ['CarillonError', 'CarillonError'],
    other: false,
  });
});

test('both builds find the package and the bullmq that is installed beside it', () => {
  const seen = inConsumer(`
    import { createRequire } from 'node:module';
    import { pathToFileURL } from 'node:url';
    const dist = process.cwd() + '/node_modules/carillon/dist/';
    const esm = await import(pathToFileURL(dist + 'support/package-root.js'));
    const cjs = createRequire(dist)(dist + 'cjs/support/package-root.js');
    console.log(JSON.stringify([esm, cjs].map((m) => [m.packageRoot(), m.resolvePackageDir('bullmq')])));`);
  const modules = join(consumer(), 'node_modules');
  const expected = [join(modules, 'carillon'), join(modules, 'bullmq')];
  expect(seen).toEqual([expected, expected]);
});

test.each([
  ['import', 'module', `await import('carillon');`],
  ['require', 'commonjs', `require('carillon');`],
] as const)('%s loads neither etcd3 nor an HTTP server, and is quick', (how, type, load) => {
  const seen = inConsumer(
    `const started = performance.now();
     ${load}
     const ms = performance.now() - started;
     ${type === 'module' ? `const { default: Module } = await import('node:module');` : `const Module = require('node:module');`}
     console.log(JSON.stringify({ ms, builtins: process.moduleLoadList, files: Object.keys(Module._cache) }));`,
    type,
  ) as { ms: number; builtins: string[]; files: string[] };
  console.log(`cold ${how} of carillon: ${seen.ms.toFixed(0)} ms`);
  const servers = seen.builtins.filter((name) =>
    /^NativeModule _?(http|https|http2|_http_server)$/.test(name),
  );
  expect(servers).toEqual([]);
  // All of our dependencies are CommonJS or have loaded their CommonJS parts here, so this list is not empty.
  expect(seen.files.some((file) => file.includes('/ioredis/'))).toBe(true);
  expect(seen.files.filter((file) => /\/(etcd3|@grpc|express|fastify|bench)\//.test(file))).toEqual([]);
  expect(seen.ms).toBeLessThan(5_000);
});

test('the check for HTTP can fail: a module that loads it is seen', () => {
  const builtins = inConsumer(
    `await import('node:http'); console.log(JSON.stringify(process.moduleLoadList));`,
  );
  expect(builtins).toContain('NativeModule http');
});
