import { repeatWords, weakestEffects } from '../domain/effects.js';
import { CarillonError } from '../domain/errors.js';
import { asText } from './replies.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** A worker as it tells of itself. */
export interface WorkerFacts {
  id: string;
  queue: string;
  host: string;
  pid: number;
  /** ISO time of its start, by its own clock. */
  startedAt: string;
  concurrency: number;
  /** Runs at work when it last told. */
  running: number;
  /** Job name → effects, `null` where its handler does not say; `*` for a processor. */
  handlers: Record<string, string | null>;
  /** What dies under it is removed at once, where the job does not say otherwise. */
  removesDead?: boolean;
  /** It finishes what it has and takes nothing. */
  draining: boolean;
}

export interface KnownWorker extends WorkerFacts {
  /** ms since its last beat, by Redis' clock. */
  beatAge: number;
}

/** A worker that does not tell of itself for so long is forgotten, ms. */
export const FORGOTTEN = 60_000;

/** Which workers of the SDK live, and which of them are to drain. */
export class WorkerRegistry {
  constructor(private readonly shard: Shard) {}

  /** @returns whether the worker is asked to drain, and why. */
  async beat(facts: WorkerFacts, leaves = false): Promise<{ drain: { note: string } | undefined }> {
    const effects = Object.fromEntries(
      Object.entries(facts.handlers).map(([name, said]) => [name, said ?? 'mayRepeat']),
    );
    const args = [facts.id, JSON.stringify(facts), JSON.stringify(effects), FORGOTTEN, leaves ? 1 : 0];
    const { status, rest } = await this.shard.run('beat-worker', 'allow-oom', args);
    if (status !== 'OK') throw statusError(status);
    const drain = asText(rest[0]);
    return { drain: drain === '' ? undefined : { note: noteOf(drain) } };
  }

  /** Those that live, by queue and id. */
  async list(): Promise<KnownWorker[]> {
    const { client, keys } = this.shard;
    await this.shard.ready();
    const [texts, beats, drains, time] = await Promise.all([
      client.hgetall(keys.workers),
      client.zrange(keys.beats, '0', '-1', 'WITHSCORES'),
      client.hgetall(keys.drains),
      client.time(),
    ]);
    const now = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000);
    const beatOf = new Map<string, number>();
    for (let i = 0; i < beats.length; i += 2) beatOf.set(beats[i] as string, Number(beats[i + 1]));
    return Object.entries(texts)
      .flatMap(([id, text]) => {
        const beat = beatOf.get(id);
        const facts = parseFacts(text);
        if (beat === undefined || facts === undefined || now - beat > FORGOTTEN) return [];
        return [{ ...facts, id, draining: facts.draining || id in drains, beatAge: Math.max(0, now - beat) }];
      })
      .sort((a, b) => (`${a.queue}:${a.id}` < `${b.queue}:${b.id}` ? -1 : 1));
  }

  /**
   * @param given the worker's id, or the beginning of it that no other has.
   * @returns its id.
   * @throws CarillonError NOT_FOUND; INVALID_OPTION where several begin so
   */
  async drain(given: string, note: string): Promise<string> {
    const { client, keys } = this.shard;
    const id = await this.#oneOf(given);
    await client.hset(keys.drains, id, JSON.stringify({ note }));
    await client.publish(keys.runs, JSON.stringify({ drain: id }));
    return id;
  }

  /** The inverse of {@link drain}. */
  async endDrain(given: string): Promise<string> {
    const { client, keys } = this.shard;
    const id = await this.#oneOf(given);
    await client.hdel(keys.drains, id);
    await client.publish(keys.runs, JSON.stringify({ drain: id }));
    return id;
  }

  /**
   * What repeats of these job names do: the weakest word of the workers that live, or else what was said last;
   * `undefined` where nobody ever said anything.
   */
  async effectsOf(queue: string, names: readonly string[]): Promise<(string | undefined)[]> {
    if (names.length === 0) return [];
    const { client, keys } = this.shard;
    const [workers, stored] = await Promise.all([this.list(), client.hget(keys.effects, queue)]);
    const live = workers.filter((worker) => worker.queue === queue).map(({ handlers }) => handlers);
    const last = parsed<Record<string, string>>(stored ?? '') ?? {};
    return names.map((name) => {
      const said = live.flatMap((handlers) => wordOf(handlers, name) ?? []);
      return weakestEffects(said) ?? wordOf(last, name);
    });
  }

  /** The same in words for people. */
  async repeatsOf(queue: string, names: readonly string[]): Promise<string[]> {
    return (await this.effectsOf(queue, names)).map(repeatWords);
  }

  async #oneOf(given: string): Promise<string> {
    const ids = (await this.list()).map(({ id }) => id);
    if (ids.includes(given)) return given;
    // The head that all ids have may be left out.
    const meant =
      given === '' ? [] : ids.filter((id) => id.startsWith(given) || id.startsWith(`carillon-${given}`));
    if (meant.length > 1) {
      throw new CarillonError('INVALID_OPTION', `${given} is the beginning of ${meant.join(', ')}`, {
        field: 'id',
        given,
        todo: 'Give more of the one that you mean.',
      });
    }
    if (meant[0] !== undefined) return meant[0];
    throw new CarillonError('NOT_FOUND', `no worker ${JSON.stringify(given)} lives`, {
      field: 'id',
      given,
      todo: '`carillon workers list` shows those that do; workers of BullMQ alone are not among them.',
    });
  }
}

function noteOf(text: string): string {
  try {
    return String((JSON.parse(text) as { note?: unknown }).note ?? '');
  } catch {
    return text;
  }
}

/** A field that no worker wrote is no worker. */
export function parseFacts(text: string): WorkerFacts | undefined {
  const facts = parsed<Partial<WorkerFacts>>(text);
  if (typeof facts?.queue !== 'string' || typeof facts.host !== 'string') return undefined;
  return { ...facts, handlers: facts.handlers ?? {} } as WorkerFacts;
}

/** What one worker says of a job name; undefined when it takes no such jobs. */
function wordOf(handlers: Readonly<Record<string, string | null>>, name: string): string | undefined {
  const field = Object.hasOwn(handlers, name) ? name : '*';
  return Object.hasOwn(handlers, field) ? (handlers[field] ?? 'mayRepeat') : undefined;
}

function parsed<T>(text: string): T | undefined {
  try {
    return (JSON.parse(text) as T | null) ?? undefined;
  } catch {
    return undefined;
  }
}
