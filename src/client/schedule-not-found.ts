import { CarillonError } from '../domain/errors.js';

/** What is said of a schedule that a queue does not have. */
export function scheduleNotFound(queue: string, id: string): CarillonError {
  return new CarillonError('NOT_FOUND', `the queue ${queue} has no schedule ${JSON.stringify(id)}`, {
    field: 'scheduleId',
    given: id,
    todo: 'Check queue and id; `carillon schedules list` shows all.',
  });
}
