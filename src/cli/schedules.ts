import type { Command } from 'commander';
import { addBackfill } from './schedules-backfill.js';
import { addChanges } from './schedules-change.js';
import { addDescribe } from './schedules-describe.js';
import { addList } from './schedules-list.js';
import { addNext } from './schedules-next.js';
import { addUpdate } from './schedules-update.js';
import { addUpsert } from './schedules-upsert.js';

/** What fires again and again: `carillon schedules …`. */
export function addSchedules(program: Command): void {
  const schedules = program.command('schedules').description('jobs that fire again and again');
  addList(schedules);
  addNext(schedules);
  addDescribe(schedules);
  addUpsert(schedules);
  addUpdate(schedules);
  addChanges(schedules);
  addBackfill(schedules);
}
