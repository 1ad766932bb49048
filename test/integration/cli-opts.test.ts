import { expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

test.each([
  [['jobs', 'add', 'q', 'a'], '{"constructor":1}', 'constructor is no option'],
  [['jobs', 'add', 'q', 'a'], '{"__proto__":1}', '__proto__ is no option'],
  [['jobs', 'add', 'q', 'a'], '{"repeat":{"every":5}}', 'Use queue.schedules.upsert'],
  [['jobs', 'add', 'q', 'a'], '{"deduplication":{"id":"d","keepLastIfActive":true}}', 'use replace: true'],
  [['jobs', 'update', 'q', 'a'], '{"toString":1}', 'toString is no option'],
  [['jobs', 'update', 'q', 'a'], '{"valueOf":null}', 'valueOf is no option'],
  [['jobs', 'update', 'q', 'a'], '{"parent":{}}', 'FlowProducer'],
  [
    ['schedules', 'upsert', 'q', 'h', '--every', '1h', '--missed', 'skip'],
    '{"repeat":{}}',
    '--every says when',
  ],
  [
    ['schedules', 'upsert', 'q', 'h', '--every', '1h', '--missed', 'skip'],
    '{"valueOf":1}',
    'valueOf is no option',
  ],
])('a wrong value in --opts ends with exit code 2: %j %s', async (args, opts, text) => {
  const prefix = namespaceFor(`opts ${args[1]} ${opts}`);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const cli = new InProcessCli(prefix);
  await queue.add('a', {}, { jobId: 'a', delay: 3_600_000 });
  expect(await cli.run(...args, '--opts', opts)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(text),
  });
});
