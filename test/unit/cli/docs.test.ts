import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { createProgram } from '../../../src/cli/program.js';
import { DOCTOR_CHECKS } from '../../../src/client/doctor-finding.js';
import { packageRoot } from '../../../src/support/package-root.js';

function page(name: string): string {
  return readFileSync(join(packageRoot(), 'docs', name), 'utf8');
}

/** First cells of the tables of a page. */
function firstCells(text: string): string[] {
  return [...text.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, cell]) => cell as string);
}

/** Commands that do something by themselves: one with others below it may too, and commander tells only by this field. */
function leaves(command: Command, path: string[] = []): string[] {
  return command.commands
    .filter((child) => child.name() !== 'help')
    .flatMap((child) => {
      const here = [...path, child.name()];
      const { _actionHandler: acts } = child as unknown as { _actionHandler: unknown };
      return [...(acts ? [here.join(' ')] : []), ...leaves(child, here)];
    });
}

describe('docs/cli.md', () => {
  test('names every command, and no other', () => {
    const documented = firstCells(page('cli.md')).map((cell) => cell.replace(/ [<[].*$/, ''));
    expect([...new Set(documented)].sort()).toEqual(leaves(createProgram()).sort());
  });

  test('names every flag that stands in it as some command has it', () => {
    const flags = new Set(['--help', '--version']);
    const collect = (command: Command) => {
      for (const option of command.options) flags.add(option.long ?? '');
      command.commands.forEach(collect);
    };
    collect(createProgram());
    const written = page('cli.md').match(/(?<=[` ])--[a-z][a-z-]+/g) ?? [];
    expect(written.length).toBeGreaterThan(20);
    expect(written.filter((flag) => !flags.has(flag))).toEqual([]);
  });
});

describe('docs/doctor.md', () => {
  test('names every check, and no other', () => {
    expect(firstCells(page('doctor.md')).sort()).toEqual(Object.keys(DOCTOR_CHECKS).sort());
  });
});
