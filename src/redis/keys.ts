/**
 * Every key that Carillon writes, built here and nowhere else (Lua builds the same names from the tag). The tag in
 * braces keeps all keys that one script touches in one slot of a Redis Cluster.
 */
export class Keys {
  /** `{namespace}`, or `{namespace:shard}` when there is more than one shard. */
  readonly tag: string;

  constructor(
    readonly namespace: string,
    readonly shard = 0,
    readonly shards = 1,
  ) {
    this.tag = shards === 1 ? `{${namespace}}` : `{${namespace}:${shard}}`;
  }

  /** STRING: shards, format and queue prefix of the namespace, written once. */
  get layout(): string {
    return `${this.namespace}:layout`;
  }
  /** Never exist; each script declares both, so that a slot migration answers TRYAGAIN before anything is written. */
  get none(): [string, string] {
    return [`${this.tag}:none1`, `${this.tag}:none2`];
  }
  /** HASH: layout hash, the counter of inc and ver, generations of `spent`. */
  get meta(): string {
    return `${this.tag}:meta`;
  }
  /** HASH: bucket → fence text. */
  get fence(): string {
    return `${this.tag}:fence`;
  }
  /** ZSET: bucket (or `p<bucket>` for plan) → its head’s time. */
  get heads(): string {
    return `${this.tag}:heads`;
  }
  /** HASH: `<queue>:<state>` → count, `<queue>:broken` → since|reason. */
  get queues(): string {
    return `${this.tag}:queues`;
  }
  /** HASH: standalone coordination: holder, token, beat, epoch. */
  get leader(): string {
    return `${this.tag}:leader`;
  }
  /** STREAM: recent ends that BullMQ does not know. */
  get history(): string {
    return `${this.tag}:history`;
  }
  /** HASH: name of a calendar → its version and dates as JSON; `:revision` → rises with every change of any. */
  get calendars(): string {
    return `${this.tag}:calendars`;
  }
  /** HASH: time zone → the offsets that its pending ticks were computed with, and the version of the tz data, as JSON. */
  get zones(): string {
    return `${this.tag}:zones`;
  }
  /**
   * HASH, while ticks are carried over to newer offsets: time zone → the offsets before; `<bucket>|<time zone>` → the
   * counter when its ticks began to be carried, or -1 when they all are.
   */
  get zoneMoves(): string {
    return `${this.tag}:zone-moves`;
  }
  /** CHANNEL: a job is due soon: its time in ms. */
  get wake(): string {
    return `${this.tag}:wake`;
  }
  /** CHANNEL: a running run is asked for something, or a worker is: queue, run id and verb as JSON. */
  get runs(): string {
    return `${this.tag}:runs`;
  }
  /** ZSET: id of a worker of the SDK → its last beat, in ms. */
  get beats(): string {
    return `${this.tag}:beats`;
  }
  /** HASH: id of a worker → who it is, as JSON. */
  get workers(): string {
    return `${this.tag}:workers`;
  }
  /** HASH: id of a worker that is to drain → since and note, as JSON. */
  get drains(): string {
    return `${this.tag}:drains`;
  }
  /** HASH: queue → what its handlers last said of their effects, by job name, as JSON; `*` is a processor's. */
  get effects(): string {
    return `${this.tag}:effects`;
  }
  /** STRING: since when dead letters are told to a receiver, ms; written once. */
  get deadSince(): string {
    return `${this.tag}:dead-since`;
  }
  /** ZSET: run id → when the dead letter died that the webhook was last told of, ms; those of the last minutes. */
  deadSeen(queue: string): string {
    return `${this.tag}:dead-seen:${queue}`;
  }
  /** STRING, with an expiry: what was recorded once under a key of a queue, as JSON. */
  once(queue: string, key: string): string {
    return `${this.tag}:once:${queue}:${key}`;
  }
  /** STRING, in tests with a virtual clock only: its ms. */
  get clock(): string {
    return `${this.tag}:clock`;
  }
  /** HASH: identity → record. */
  jobs(bucket: number): string {
    return `${this.tag}:${bucket}:jobs`;
  }
  /** ZSET: identity → fire time in ms. */
  due(bucket: number): string {
    return `${this.tag}:${bucket}:due`;
  }
  /** ZSET: schedule’s identity → when the planner’s answer is needed, in ms. */
  plan(bucket: number): string {
    return `${this.tag}:${bucket}:plan`;
  }
  /** ZSET: identity of a job whose queue is broken → fire time in ms. */
  parked(bucket: number): string {
    return `${this.tag}:${bucket}:parked`;
  }
  /** ZSET: identity of a run that others wait for → when it is looked at next, in ms. */
  parents(bucket: number): string {
    return `${this.tag}:${bucket}:parents`;
  }
  /** HASH: identity of such a run → its outcome, when it was decided, how far its children were told, and why. */
  outcomes(bucket: number): string {
    return `${this.tag}:${bucket}:outcomes`;
  }
  /** HASH: identity of a job that waits for others → its parents and policies as JSON. */
  after(bucket: number): string {
    return `${this.tag}:${bucket}:after`;
  }
  /** SET: identities of the jobs that wait, or waited, for this one; as long as its outcome is kept. */
  children(identity: string): string {
    return `${this.tag}:children:${identity}`;
  }
  /** SET: identities of the schedules that follow this one. */
  followers(identity: string): string {
    return `${this.tag}:followers:${identity}`;
  }
  /** SET: identities of runs that others wait for and that are not in BullMQ yet, and of followed schedules. */
  get watched(): string {
    return `${this.tag}:watched`;
  }
  /** ZSET: bucket → the earliest look at a parent of it. */
  get looks(): string {
    return `${this.tag}:looks`;
  }
  /** Never exists; BullMQ hangs the outcomes of watched runs on it: `:dependencies`, `:processed`, `:failed`. */
  get latch(): string {
    return `${this.tag}:latch`;
  }
  /** HASH: queue → the limits of its gate as JSON; the empty name pauses every queue. */
  get gates(): string {
    return `${this.tag}:gates`;
  }
  /** ZSET: queue with held runs → when its gate is drained next, ms. */
  get gateHeads(): string {
    return `${this.tag}:gate-heads`;
  }
  /** SET: queues whose schedules are parked while the queue is on hold. */
  get gateParked(): string {
    return `${this.tag}:gate-parked`;
  }
  /** ZSET: byte of the bucket and identity of a held run → its order in the gate, a tenant each. */
  gate(queue: string, group: string): string {
    return `${this.tag}:gate:${queue}:${group}`;
  }
  /** ZSET: tenant with held runs → its place: rising, about when it had its last turn. */
  gateRing(queue: string): string {
    return `${this.tag}:gate-ring:${queue}`;
  }
  /** HASH: the empty text, and `g<tenant>` → tokens and as of when. */
  gateTokens(queue: string): string {
    return `${this.tag}:gate-tokens:${queue}`;
  }
  /** HASH: identity → since, reason, record. */
  quarantine(bucket: number): string {
    return `${this.tag}:${bucket}:quarantine`;
  }
  /** HASH: ended identity → when, how, requests. `short` for ids that were generated. */
  spent(bucket: number, generation: number, short = false): string {
    return `${this.tag}:${bucket}:${short ? 'spent-short' : 'spent'}:${generation}`;
  }
  /** HASH: slot → the fate of one tick of a schedule: a ring of its last ones. */
  ledger(identity: string): string {
    return `${this.tag}:ledger:${identity}`;
  }
  /** HASH: deduplication id → inc, expiry, bucket, job id, while the job is in our tier. */
  dedup(queue: string): string {
    return `${this.tag}:dedup:${queue}`;
  }
}
