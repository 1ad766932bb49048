/** What jobs of the timers cannot have, and what does its work. */
const INSTEAD: Readonly<Record<string, string>> = {
  parent: 'Add the flow by BullMQ’s FlowProducer; its jobs start at once.',
  repeat: 'Use queue.schedules.upsert, or upsertJobScheduler.',
  repeatJobKey: 'Leave it out: schedules name their runs themselves.',
  prevMillis: 'Leave it out: schedules count their ticks themselves.',
  debounce: 'Use deduplication.',
  failParentOnFailure: 'Add the flow by BullMQ’s FlowProducer.',
  continueParentOnFailure: 'Add the flow by BullMQ’s FlowProducer.',
  ignoreDependencyOnFailure: 'Add the flow by BullMQ’s FlowProducer.',
  removeDependencyOnFailure: 'Add the flow by BullMQ’s FlowProducer.',
};

/** The same of `deduplication.keepLastIfActive`: only a worker knows what is active. */
export const INSTEAD_OF_KEEP_LAST =
  'Leave it out, or use replace: true, which keeps the last job while none has started.';

/** What to do in the place of an option of BullMQ's that is not supported; undefined for any other name. */
export function insteadOf(option: string): string | undefined {
  return Object.hasOwn(INSTEAD, option) ? INSTEAD[option] : undefined;
}
