import type { Redis } from 'ioredis';

/** All keys whose names hold `part`, such as a test's namespace, sorted. Other tests' keys may come and go meanwhile. */
export async function keysWith(client: Redis, part: string): Promise<string[]> {
  const keys = new Set<string>();
  for await (const page of client.scanStream({ match: `*${part}*`, count: 1000 })) {
    for (const key of page as string[]) keys.add(key);
  }
  return [...keys].sort();
}
