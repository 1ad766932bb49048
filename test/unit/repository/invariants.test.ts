import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../../src/support/package-root.js';

const PAGE = join(packageRoot(), 'docs', 'invariants.md');
const text = readFileSync(PAGE, 'utf8');

test('the page names the twelve invariants in order, each with a test that is there', () => {
  const sections = text.split(/^## /m).slice(1);
  expect(sections.map((section) => section.match(/^I\d+/)?.[0])).toEqual(
    Array.from({ length: 12 }, (_, i) => `I${i + 1}`),
  );
  for (const section of sections) {
    const links = [...section.matchAll(/\]\((\.\.\/test\/[^)]+)\)/g)].map((match) => match[1] as string);
    expect(links.length, section.slice(0, 30)).toBeGreaterThan(0);
    expect(links.filter((link) => !existsSync(join(dirname(PAGE), link)))).toEqual([]);
  }
});
