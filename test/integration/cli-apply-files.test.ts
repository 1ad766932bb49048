import { describe, expect, test } from 'vitest';
import type { Queue } from '../../src/index.js';
import { cliAndQueues, type InProcessCli, idsOf } from './cli-in-process.js';

const HOURLY = 'every: 1h, missed: skip';

/** What a refused apply says, for programs and for people. */
async function refusal(cli: InProcessCli, ...args: string[]) {
  const { code, stdout, stderr } = await cli.run('apply', ...args, '--yes', '--json');
  return { exit: code, stderr, error: JSON.parse(stdout).error as { code: string; problems?: string[] } };
}

describe('prune', () => {
  test('two files of one name do not delete each other’s schedules', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'ap', 'other');
    const file = (queue: string, id: string, head = '') =>
      cli.file('s.yaml', `${head}queues:\n  ${queue}:\n    ${id}: { ${HOURLY} }\n`);
    await cli.text('apply', '-f', file('ap', 'one'), '--yes');
    const { code, stderr } = await cli.run('apply', '-f', file('other', 'two'), '--prune', '--yes');
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/1 schedules .*does not name \(ap\).*'ap: \{\}'/),
    ]);
    expect([await idsOf(queues[0]), await idsOf(queues[1] as Queue)]).toEqual([['one'], ['two']]);
    // Not even when one of them takes the name of the other's file for its label.
    await cli.text('apply', '-f', file('other', 'two', 'label: s\n'), '--prune', '--yes');
    expect(await idsOf(queues[0])).toEqual(['one']);
  });

  test('without a label, what a file of the name created in the queues that it names', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a', 'b');
    const file = (text: string) => cli.file('s.yaml', `queues:\n${text}`);
    const both = `  a: { one: { ${HOURLY} }, two: { ${HOURLY} } }\n  b: { three: { ${HOURLY} } }\n`;
    await queues[0].schedules.upsert('by-hand', { every: '1h', missed: 'skip' });
    await cli.text('apply', '-f', file(both), '--yes');
    await cli.text('apply', '-f', file(`  a: { one: { ${HOURLY} } }\n`), '--prune', '--yes');
    expect([await idsOf(queues[0]), await idsOf(queues[1] as Queue)]).toEqual([
      ['by-hand', 'one'],
      ['three'],
    ]);
    await cli.text('apply', '-f', file('  a: {}\n  b:\n'), '--prune', '--yes');
    expect([await idsOf(queues[0]), await idsOf(queues[1] as Queue)]).toEqual([['by-hand'], []]);
    const unnamed = await refusal(cli, '-f', cli.file('my jobs.yaml', 'queues: {}\n'), '--prune');
    expect([unnamed.exit, unnamed.stderr]).toEqual([
      2,
      expect.stringMatching(/prune needs a label: .*Write label: /),
    ]);
  });

  test('a label that a file gets later has what stands in it by then', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a', 'b');
    const both = `queues:\n  a: { one: { ${HOURLY} } }\n  b: { two: { ${HOURLY} } }\n`;
    await cli.text('apply', '-f', cli.file('s.yaml', both), '--yes');
    await cli.text('apply', '-f', cli.file('s.yaml', `label: web\n${both}`), '--yes');
    await cli.text('apply', '-f', cli.file('s.yaml', 'label: web\nqueues: {}\n'), '--prune', '--yes');
    expect([await idsOf(queues[0]), await idsOf(queues[1] as Queue)]).toEqual([[], []]);
  });

  test('the label may be said beside the file, and not twice', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const file = (id: string, head = '') =>
      cli.file('s.yaml', `${head}queues:\n  a:\n    ${id}: { ${HOURLY} }\n`);
    await cli.text('apply', '-f', file('one'), '--label', 'web', '--yes');
    await cli.text('apply', '-f', file('two'), '--label', 'web', '--prune', '--yes');
    expect(await idsOf(queues[0])).toEqual(['two']);
    const { exit } = await refusal(cli, '-f', file('one', 'label: web\n'), '--label', 'other');
    expect(exit).toBe(2);
    expect((await refusal(cli, '-f', file('one'), '--label', 'a b')).exit).toBe(2);
  });
});

describe('several files', () => {
  test('are applied together, each with its own label', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const file = (label: string, ids: string[]) => {
      const lines = ids.map((id) => `    ${id}: { ${HOURLY} }\n`).join('');
      return cli.file(`${label}.yaml`, `label: ${label}\nqueues:\n  a:\n${lines}`);
    };
    await cli.text('apply', '-f', file('one', ['x', 'y']), '-f', file('two', ['z', 'w']), '--yes');
    expect(await idsOf(queues[0])).toEqual(['w', 'x', 'y', 'z']);
    await cli.text('apply', '-f', file('one', ['x']), '--prune', '--yes');
    expect(await idsOf(queues[0])).toEqual(['w', 'x', 'z']);
    // What moves from one to the other is in the files as before.
    await cli.text('apply', '-f', file('one', []), '-f', file('two', ['x', 'z']), '--prune', '--yes');
    expect(await idsOf(queues[0])).toEqual(['x', 'z']);
  });

  test('of which two hold one schedule are refused', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const text = `queues:\n  a:\n    x: { ${HOURLY} }\n`;
    const { exit, error } = await refusal(
      cli,
      '-f',
      cli.file('1.yaml', text),
      '-f',
      cli.file('2.yaml', text),
    );
    expect([exit, error.problems]).toEqual([2, [expect.stringMatching(/2\.yaml:3: x: its id is taken by/)]]);
    expect(await idsOf(queues[0])).toEqual([]);
  });
});

test('every problem stands in the document', async ({ task }) => {
  const { cli } = cliAndQueues(task);
  const text =
    'queues:\n  a:\n    x: { missed: skip }\n    y: { every: 1h }\n    z: { every: 1h, missed: no }\n';
  const { stderr, error } = await refusal(cli, '-f', cli.file('f.yaml', text));
  expect(error.problems).toEqual([3, 4, 5].map((line) => expect.stringContaining(`f.yaml:${line}: a.`)));
  for (const problem of error.problems as string[]) expect(stderr).toContain(problem);
});

describe('after', () => {
  const OTHER = 'after: [{ queue: b, scheduleId: z }]';

  test('what is followed is written first, in whatever order and queue it stands', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a', 'b');
    const text = `queues:\n  a:\n    one: { ${HOURLY}, after: [two] }\n    two: { ${HOURLY}, ${OTHER} }\n  b:\n    z: { ${HOURLY} }\n`;
    expect(await cli.text('apply', '-f', cli.file('f.yaml', text), '--yes')).toContain('applied 3 changes');
    const exported = cli.file('exported.yaml', await cli.text('export'));
    for (const queue of queues) for (const id of await idsOf(queue)) await queue.schedules.get(id).delete();
    expect(await cli.text('apply', '-f', exported, '--yes')).toContain('applied 3 changes');
    // An edge that turns round is no cycle, though both of its ends stand already.
    const turned = `queues:\n  a:\n    one: { ${HOURLY} }\n    two: { ${HOURLY}, after: [one] }\n`;
    expect(await cli.text('apply', '-f', cli.file('f.yaml', turned), '--yes')).toContain('applied 2 changes');
  });

  test('one that stands only in Redis may be followed, if it is not to be deleted', async ({ task }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const file = (lines: string) => cli.file('f.yaml', `label: f\nqueues:\n  a:\n${lines}`);
    await queues[0].schedules.upsert('by-hand', { every: '1h', missed: 'skip' });
    await cli.text(
      'apply',
      '-f',
      file(`    x: { ${HOURLY}, after: [by-hand] }\n    y: { ${HOURLY} }\n`),
      '--yes',
    );
    const child = file(`    x: { ${HOURLY}, after: ['y'] }\n`);
    const { error } = await refusal(cli, '-f', child, '--prune');
    expect(error).toMatchObject({
      code: 'UNKNOWN_PARENT',
      problems: [expect.stringContaining('a:y is to be deleted')],
    });
    expect(await cli.text('apply', '-f', child, '--yes')).toContain('applied 1 changes');
  });

  test.each([
    ['in the file', `    x: { ${HOURLY}, after: ['y'] }\n    y: { ${HOURLY}, after: [x] }\n`],
    ['by way of one that stands in Redis', `    x: { ${HOURLY}, after: [stored] }\n`],
    ['with itself', `    x: { ${HOURLY}, after: [x] }\n`],
  ])('a cycle %s is one, and nothing is written', async (name, lines) => {
    const { cli, queues } = cliAndQueues({ name: `cycle ${name}` }, 'a');
    const [queue] = queues;
    await queue.schedules.upsert('x', { every: '2h', missed: 'skip' });
    await queue.schedules.upsert('stored', { every: '1h', missed: 'skip', after: ['x'] });
    const file = cli.file('f.yaml', `queues:\n  a:\n    free: { ${HOURLY} }\n${lines}`);
    const { exit, error } = await refusal(cli, '-f', file);
    expect([exit, error.code]).toEqual([1, 'CYCLE']);
    expect(error.problems).toEqual([
      expect.stringMatching(/f\.yaml:\d: \w: after: the schedules follow each other: a:\w+ after a:/),
    ]);
    expect(await idsOf(queue)).toEqual(['stored', 'x']);
  });

  test('one that is nowhere is told of before anything is written, as is an id of a job', async ({
    task,
  }) => {
    const { cli, queues } = cliAndQueues(task, 'a');
    const [queue] = queues;
    const text = `queues:\n  a:\n    free: { ${HOURLY} }\n    x: { ${HOURLY}, after: [nobody] }\n`;
    const unknown = await refusal(cli, '-f', cli.file('f.yaml', text));
    expect(unknown.error).toMatchObject({
      code: 'UNKNOWN_PARENT',
      problems: [expect.stringMatching(/f\.yaml:4: x: after: a:nobody stands neither/)],
    });
    await queue.add('send', {}, { jobId: 'busy', delay: 3_600_000 });
    const taken = `queues:\n  a:\n    free: { ${HOURLY} }\n    busy: { ${HOURLY} }\n`;
    expect((await refusal(cli, '-f', cli.file('f.yaml', taken))).error).toMatchObject({
      code: 'ID_IN_USE',
      problems: [expect.stringContaining('f.yaml:4: busy: ')],
    });
    expect(await idsOf(queue)).toEqual([]);
  });
});
