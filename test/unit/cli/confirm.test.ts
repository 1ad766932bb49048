import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { confirmed } from '../../../src/cli/confirm.js';

function terminal(answer: string, isTTY = true) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = new PassThrough();
  input.write(`${answer}\n`);
  return { input, output };
}

test.each([
  ['y', true],
  ['YES', true],
  [' yes ', true],
  ['n', false],
  ['', false],
  ['yeah', false],
])('the answer %j', async (answer, expected) => {
  const at = terminal(answer);
  expect(await confirmed(false, 'Apply 3 changes?', at)).toBe(expected);
  expect(String(at.output.read())).toContain('Apply 3 changes? [y/N] ');
});

test('--yes asks nobody', async () => {
  const at = terminal('n');
  expect(await confirmed(true, 'Apply?', at)).toBe(true);
  expect(at.output.read()).toBeNull();
});

test('where nobody can be asked it is refused', async () => {
  await expect(confirmed(false, 'Apply?', terminal('y', false))).rejects.toMatchObject({
    code: 'USAGE',
    todo: expect.stringContaining('--yes'),
  });
});
