import { type DoctorOptions, type DoctorReport, examine } from '../../src/client/doctor.js';
import { bucketOf } from '../../src/domain/buckets.js';
import { FLAGS } from '../../src/redis/record.js';
import { packRecord, type RecordModel } from '../support/builders-record.js';
import { NOW, Spine } from '../support/spine.js';

/** A namespace to plant faults in. Its clock stands still, and nobody serves it unless {@link lead} says so. */
export class Patient {
  private constructor(readonly spine: Spine) {}

  static async admit(test: { name: string }): Promise<Patient> {
    return new Patient(await Spine.virtual(test));
  }

  get keys() {
    return this.spine.keys;
  }

  get client() {
    return this.spine.client;
  }

  /** A leader with a fresh heartbeat and its fences; it does nothing. */
  async lead(): Promise<void> {
    await this.spine.lead(1, 'h1');
    const leader = { holder: 'h1', token: 1, beat: NOW, epoch: '1|e' };
    await this.client.hset(this.keys.leader, leader);
  }

  /** A record with its index entries and its count, all in order unless `over` says otherwise. */
  async plant(identity: string, model: RecordModel, over: Partial<Planted> = {}): Promise<number> {
    const { bucket = bucketOf(identity), count = true } = over;
    const fireAt = dueTimeOf(model);
    const due = 'due' in over ? over.due : model.state === 'scheduled' && fireAt > 0 ? fireAt : undefined;
    const parked = 'parked' in over ? over.parked : model.state === 'parked' ? fireAt : undefined;
    const plan = 'plan' in over ? over.plan : asksForPlan(model) ? NOW : undefined;
    const bytes = over.bytes ?? packRecord(model);
    await this.client.hset(this.keys.jobs(bucket), identity, bytes);
    await this.client.hset(this.keys.meta, 'inc', model.ver);
    if (due !== undefined) await this.client.zadd(this.keys.due(bucket), due, identity);
    if (parked !== undefined) await this.client.zadd(this.keys.parked(bucket), parked, identity);
    if (plan !== undefined) await this.client.zadd(this.keys.plan(bucket), plan, identity);
    const queue = identity.slice(0, identity.indexOf(':'));
    if (count) {
      const state = model.kind === 'schedule' ? 'schedules' : model.state;
      await this.client.hincrby(this.keys.queues, `${queue}:${state}`, 1);
    }
    return bucket;
  }

  examine(options: DoctorOptions = {}): Promise<DoctorReport> {
    const { namespace, prefix } = this.spine;
    return examine(this.client, { namespace, prefix, virtualClock: true }, { pause: 20, ...options });
  }

  /**
   * What is found, as `check subject: detail`; without the word about the missing leader, which most patients share.
   */
  async findings(): Promise<string[]> {
    const { findings } = await this.examine();
    return findings
      .filter(({ check }) => check !== 'leader')
      .map(({ check, severity, subject, detail }) => `${severity} ${check} ${subject}: ${detail}`)
      .sort();
  }
}

/** When a record is to be looked at; 0 for never. Written apart from the rule that it judges. */
function dueTimeOf(model: RecordModel): number {
  if (model.kind === 'job') return model.at;
  const times = [model.check, (model.marks & FLAGS.overdue) === 0 ? model.curFire : 0];
  return Math.min(...times.filter((time) => time > 0), Number.MAX_SAFE_INTEGER) % Number.MAX_SAFE_INTEGER;
}

function asksForPlan(model: RecordModel): boolean {
  if (model.kind === 'job' || model.state !== 'scheduled') return false;
  if ((model.marks & FLAGS.overdue) !== 0) return true;
  const known = (model.cur > 0 ? 1 : 0) + (model.next > 0 ? 1 : 0);
  if ((model.marks & FLAGS.last) === 0) return known < 2;
  return known === 0 && model.waiting.length === 0;
}

interface Planted {
  bucket: number;
  due: number | undefined;
  parked: number | undefined;
  plan: number | undefined;
  bytes: Buffer;
  /** Whether the queue's count is raised. */
  count: boolean;
}
