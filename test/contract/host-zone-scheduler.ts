// What `upsertJobScheduler` answers on a host whose zone TZ names: tsx host-zone-scheduler.ts <redis url>
import { randomUUID } from 'node:crypto';
import { CarillonError, Queue } from '../../src/index.js';

const queue = new Queue('q', { connection: process.argv[2] ?? '', prefix: `t-zone-${randomUUID()}` });

async function answer(options: Parameters<typeof queue.upsertJobScheduler>[1]): Promise<string> {
  try {
    await queue.upsertJobScheduler('s', options);
    return 'accepted';
  } catch (error) {
    return error instanceof CarillonError ? `${error.code} ${error.field}` : String(error);
  }
}

const answers = {
  pattern: await answer({ pattern: '0 4 * * *' }),
  withZone: await answer({ pattern: '0 4 * * *', tz: 'UTC' }),
  every: await answer({ every: 60_000 }),
};
await queue.close();
console.log(JSON.stringify(answers));
