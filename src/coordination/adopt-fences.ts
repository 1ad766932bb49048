import { BUCKETS } from '../domain/buckets.js';
import { parseFence } from '../domain/fence.js';

/** `<number>|<id>` is what tokens are ordered within. */
export interface Epoch {
  number: number;
  id: string;
}

/** Where the coordination that shall lead from now on keeps its epoch: etcd, or Redis for standalone. */
export interface EpochSource {
  /**
   * The epoch, if it has one yet, and the highest token that it can vouch for in a bucket: what a fence of this epoch
   * may hold without being ahead.
   */
  read(): Promise<{ epoch: Epoch | undefined; highestToken(bucket: number): number }>;
  /** Writes `to` over what {@link read} found last. False when somebody else wrote meanwhile. */
  raise(to: Epoch): Promise<boolean>;
}

/** The fences of a namespace in Redis. */
export interface FenceStore {
  /** Bucket → fence text, of those that have one. */
  read(): Promise<ReadonlyMap<number, string>>;
  /** Raises those of a range that are below. @returns the buckets of the range that are above. */
  raise(first: number, last: number, fence: string): Promise<number[]>;
}

export interface AdoptPlan {
  /** The epoch that all fences get; undefined when nothing needs to be done. */
  epoch: Epoch | undefined;
  /** Whether it has to be written to the source first; otherwise a former adopt is finished. */
  isNew: boolean;
  /** Buckets whose fences stand in the way, and those that are below. */
  inTheWay: number[];
  below: number[];
}

export interface AdoptOutcome extends AdoptPlan {
  /** Buckets that somebody of another epoch raised above it meanwhile. */
  above: number[];
}

/** Buckets of one call. */
const STEP = 16;
/** Somebody else may write the source's epoch at the same time. */
const ATTEMPTS = 5;

/**
 * Pure. A fence stands in the way when its epoch is not below the source's and is another one, or when its token is
 * ahead of what the source can vouch for: the source was rebuilt, restored from an older state, or is another one.
 */
export function planAdopt(
  fences: ReadonlyMap<number, string>,
  current: Epoch | undefined,
  highestToken: (bucket: number) => number,
  newId: string,
): AdoptPlan {
  const inTheWay: number[] = [];
  const below: number[] = [];
  let highest = current?.number ?? 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const fence = parseFence(fences.get(bucket) ?? '');
    const { number = 0, epochId, token = 0 } = fence ?? {};
    highest = Math.max(highest, number);
    if (fence === undefined || number < (current?.number ?? 0)) below.push(bucket);
    else if (number > (current?.number ?? 0) || epochId !== current?.id || token > highestToken(bucket))
      inTheWay.push(bucket);
  }
  if (inTheWay.length > 0) return { epoch: { number: highest + 1, id: newId }, isNew: true, inTheWay, below };
  const unfinished = below.length > 0 && fences.size > 0;
  return { epoch: unfinished ? current : undefined, isNew: false, inTheWay, below };
}

/**
 * Makes a source of coordination the one whose leaders the fences obey: writes the highest number of any fence + 1 to the
 * source, then raises bucket by bucket, and never lowers. Every leader of before is refused from its next call on. Cut
 * off half-way, it is finished by being called again.
 * @param newId of 8 hexadecimal digits, drawn anew by the caller.
 * @throws Error when the source's epoch changes under it again and again.
 */
export async function adoptFences(
  source: EpochSource,
  fences: FenceStore,
  newId: string,
): Promise<AdoptOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    // The fences first: one that a hand-over raises after its source was read would seem to be ahead of it.
    const before = await fences.read();
    const { epoch: current, highestToken } = await source.read();
    const plan = planAdopt(before, current, highestToken, newId);
    const { epoch, isNew } = plan;
    if (epoch === undefined) return { ...plan, above: [] };
    if (isNew && !(await source.raise(epoch))) {
      if (attempt < ATTEMPTS) continue;
      throw new Error('the epoch was changed by somebody else at the same time, again and again');
    }
    const text = `${epoch.number}|${epoch.id}|`;
    const notRaised: number[] = [];
    for (let first = 0; first < BUCKETS; first += STEP) {
      notRaised.push(...(await fences.raise(first, first + STEP - 1, `${text}0|fence-adopt`)));
    }
    // Most were raised by leaders of this very epoch, who were quicker.
    const found = notRaised.length > 0 ? await fences.read() : new Map<number, string>();
    const above = notRaised.filter((bucket) => !found.get(bucket)?.startsWith(text));
    return { ...plan, above };
  }
}
