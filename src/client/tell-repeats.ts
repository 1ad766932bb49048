import type { WorkerRegistry } from '../redis/worker-registry.js';

/** What has a job name, and is told what another run of it does. */
interface Told {
  readonly queue: string;
  readonly name?: string;
  repeats?: string;
}

/** Tells of each that has a name what its repeats do, by what its handlers say; asked once a queue. */
export async function tellRepeats(workers: WorkerRegistry, all: Iterable<Told>): Promise<void> {
  const named = [...all].filter((one): one is Told & { name: string } => one.name !== undefined);
  for (const queue of new Set(named.map((one) => one.queue))) {
    const own = named.filter((one) => one.queue === queue);
    const repeats = await workers.repeatsOf(
      queue,
      own.map(({ name }) => name),
    );
    for (const [i, one] of own.entries()) one.repeats = repeats[i] as string;
  }
}
