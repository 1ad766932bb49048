import { checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { checkJobName } from '../domain/ids.js';
import { encodeData } from '../queue/payload.js';
import { type JobOptions, OF_ONE_JOB, resolveOptions } from './job-options.js';
import type { EncodedTemplate } from './schedule-write.js';
import type { ScheduleTemplate } from './schedules-port.js';

/** Each run of a schedule has its own time and id. */
const NOT_OF_RUNS = [...OF_ONE_JOB, 'deadline'] as const;

/**
 * Checks and encodes what each run of a schedule is to be.
 * @param defaults the queue's options of jobs that do not say otherwise.
 * @throws CarillonError INVALID_ID, INVALID_OPTION, UNSUPPORTED
 */
export function encodeTemplate(
  scheduleId: string,
  template: ScheduleTemplate,
  defaults: JobOptions,
  maxPayload: number,
): EncodedTemplate {
  rejectUnknown(checkObject('template', template), ['name', 'data', 'opts'], 'template.');
  const opts = (template.opts === undefined ? {} : checkObject('template.opts', template.opts)) as JobOptions;
  if (opts.durability !== undefined) {
    refuse(
      'template.opts.durability',
      opts.durability,
      'belongs to the call that stores the schedule',
      'Give new Queue(name, { durability }).',
    );
  }
  const { repeat } = opts as { repeat?: unknown };
  if (repeat !== undefined && repeat !== false) {
    refuse(
      'template.opts.repeat',
      repeat,
      'is what the schedule itself does',
      'Leave it out: the definition says when.',
      'UNSUPPORTED',
    );
  }
  for (const key of NOT_OF_RUNS) {
    if (opts[key] !== undefined) {
      refuse(
        `template.opts.${key}`,
        opts[key],
        'belongs to one job, not to the runs of a schedule',
        'Leave it out.',
      );
    }
  }
  const inherited = { ...defaults };
  for (const key of NOT_OF_RUNS) delete inherited[key];
  const resolved = resolveOptions({ ...inherited, ...opts });
  return {
    name: checkJobName(template.name ?? scheduleId, 'template.name'),
    data: encodeData(template.data, maxPayload, resolved.sizeLimit),
    opts: resolved.text,
    priority: resolved.priority,
    lifo: resolved.lifo,
  };
}
