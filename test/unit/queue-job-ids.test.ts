import { expect, test } from 'vitest';
import { jobIds, requestedId } from '../../src/client/job-ids.js';
import { checkJobId } from '../../src/domain/ids.js';

test('generated ids sort by their making, also within one ms and when the clock goes back', () => {
  let now = 1_700_000_000_000;
  let drawn = 0;
  const next = jobIds(
    () => now,
    () => (drawn++ % 10) / 10,
  );
  const ids = [next(), next(), next()];
  now -= 5000;
  ids.push(next());
  now += 10_000;
  ids.push(next());
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(ids).size).toBe(5);
  for (const id of ids) expect(checkJobId(id)).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
});

test('two queues, as two processes, make different ids in the same ms', () => {
  const now = () => 1_700_000_000_000;
  expect(jobIds(now)()).not.toBe(jobIds(now)());
});

test('the id made from a request is the same for the same request and place, and no other', () => {
  expect(requestedId('a', 0)).toBe(requestedId('a', 0));
  expect(new Set([requestedId('a', 0), requestedId('a', 1), requestedId('b', 0)]).size).toBe(3);
  for (let n = 0; n < 1000; n++) checkJobId(requestedId('request', n));
});
