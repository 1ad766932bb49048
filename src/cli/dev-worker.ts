import { BullWorker } from '../queue/bullmq.js';
import { takeMark } from '../queue/job-json.js';

/**
 * The worker of `carillon dev`, in a process of its own: BullMQ's own Worker, which knows nothing of Carillon. It
 * prints each run, and ends when it is told to or when the process that started it is gone.
 */
const [url = '', prefix = 'bull', ...queues] = process.argv.slice(2);

const workers = queues.map((queue) => {
  const worker = new BullWorker(
    queue,
    async (job) => {
      const due = takeMark({ ...job.opts });
      const late = due === undefined ? '' : ` (${Date.now() - due} ms late)`;
      process.stdout.write(`ran ${job.name} ${job.id} of ${queue}${late} ${JSON.stringify(job.data)}\n`);
    },
    { connection: { url, maxRetriesPerRequest: null }, prefix, removeOnComplete: { count: 1000 } },
  );
  worker.on('error', (error) => process.stderr.write(`worker of ${queue}: ${error.message}\n`));
  return worker;
});

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await Promise.all(workers.map((worker) => worker.close()));
  process.exit(0);
}

process.on('SIGTERM', stop);
process.stdin.on('end', stop);
process.stdin.resume();
