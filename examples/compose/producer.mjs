// A producer: a schedule in one queue, and a job for five seconds from now in another, each second.
//
//   REDIS_URL=redis://127.0.0.1:16379 node examples/compose/producer.mjs emails reports
import { setTimeout as pause } from 'node:timers/promises';
import { Queue } from 'carillon';

const [jobs, schedules] = process.argv.slice(2);
if (jobs === undefined || schedules === undefined) {
  console.error('Name a queue for jobs and one for schedules: node producer.mjs <queue> <queue>');
  process.exit(2);
}

const connection = { url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' };
const emails = new Queue(jobs, { connection });
const reports = new Queue(schedules, { connection });

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopping.abort());

await reports.schedules.upsert(
  'every-ten-seconds',
  { cron: '*/10 * * * * *', tz: 'UTC', missed: 'skip' },
  { name: 'report' },
);
console.log(`adding to ${jobs}; ${schedules} has a schedule`);
while (!stopping.signal.aborted) {
  const second = Math.floor(Date.now() / 1000);
  // The id makes it harmless that another producer, or this one started again, adds the same.
  await emails
    .add('greet', { second }, { delay: 5000, jobId: `greet-${second}`, removeOnComplete: { age: 60 } })
    .catch((error) => console.error(`not added: ${error.message}`));
  await pause(1000, undefined, { signal: stopping.signal }).catch(() => undefined);
}
await Promise.all([emails.close(), reports.close()]);
