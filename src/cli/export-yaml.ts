import { Document, isMap, type Pair, type Scalar } from 'yaml';
import type { ScheduleInfo } from '../client/schedule-info.js';
import { writtenSchedule } from '../domain/written-schedule.js';
import { isMark } from './marks.js';
import { isPlainNote } from './pause-note.js';

const HEAD = ` Schedules as \`carillon apply -f <file>\` takes them.`;

/** The schedules of queues as a file that apply takes back unchanged. Pure. */
export function schedulesYaml(queues: ReadonlyMap<string, readonly ScheduleInfo[]>): string {
  const content = Object.fromEntries(
    [...queues].map(([queue, infos]) => [
      queue,
      Object.fromEntries(infos.map((info) => [info.id, written(info)])),
    ]),
  );
  const document = new Document({ queues: content });
  document.commentBefore = HEAD;
  for (const [queue, infos] of queues) {
    for (const info of infos) comment(document, queue, info);
  }
  return document.toString({ lineWidth: 0 });
}

function written({ id, definition, template, state, note }: ScheduleInfo): Record<string, unknown> {
  const { tags: all, ...rest } = writtenSchedule(definition);
  // Marks belong to the file that put them there.
  const tags = all?.filter((tag) => !isMark(tag)) ?? [];
  const { name, data, opts } = template;
  const runs = {
    ...(name === id ? {} : { name }),
    ...(JSON.stringify(data) === '{}' ? {} : { data }),
    ...(Object.keys(opts).length === 0 ? {} : { opts }),
  };
  return {
    ...rest,
    ...(tags.length === 0 ? {} : { tags }),
    ...(state === 'paused' ? { paused: pausedAs(note) } : {}),
    ...(Object.keys(runs).length === 0 ? {} : { template: runs }),
  };
}

function pausedAs(note: string | undefined): unknown {
  if (note === undefined || note === '') return true;
  return isPlainNote(note) ? note : { note };
}

/** What a file cannot say, and a reader wants to know. */
function comment(document: Document, queue: string, { id, state, note }: ScheduleInfo): void {
  if (state !== 'suspended' && state !== 'ended') return;
  const map = document.getIn(['queues', queue]);
  if (!isMap(map)) return;
  const pair = (map.items as Pair<Scalar, unknown>[]).find(({ key }) => key.value === id);
  if (pair !== undefined) pair.key.commentBefore = ` ${state}${note === undefined ? '' : `: ${note}`}`;
}
