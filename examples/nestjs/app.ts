// A NestJS application whose queues are Carillon's: the one line is marked. Run it beside a Redis:
//   npx tsx --tsconfig examples/nestjs/tsconfig.json examples/nestjs/app.ts
import 'reflect-metadata';
import { BullModule, InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Job } from 'bullmq';
import { Queue, Scheduler } from 'carillon';

const url = new URL(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
const connection = { host: url.hostname, port: Number(url.port) };
const prefix = process.env.PREFIX ?? 'bull';

// The one line. Everything else is @nestjs/bullmq as its own documentation shows it.
BullModule.queueClass = Queue;

@Injectable()
class Reminders {
  constructor(@InjectQueue('reminders') private readonly queue: Queue<{ to: string }>) {}

  /** Added twice, it is still one reminder. */
  remind(to: string, at: Date) {
    return this.queue.add('remind', { to }, { at, jobId: `reminder-${to}` });
  }
}

/** A stock BullMQ worker, as @nestjs/bullmq makes it. */
@Processor('reminders')
class ReminderWorker extends WorkerHost {
  override async process(job: Job<{ to: string }>): Promise<void> {
    console.log(`reminded ${job.data.to}`);
  }
}

/** Moves what is due. It may as well run in a process of its own: `npx carillon scheduler`. */
@Injectable()
class SchedulerHost implements OnModuleInit, OnApplicationShutdown {
  readonly #scheduler = new Scheduler({ redis: url.href, prefix });

  async onModuleInit(): Promise<void> {
    await this.#scheduler.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#scheduler.stop();
  }
}

@Module({
  imports: [BullModule.forRoot({ connection, prefix }), BullModule.registerQueue({ name: 'reminders' })],
  providers: [Reminders, ReminderWorker, SchedulerHost],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const inASecond = new Date(Date.now() + 1000);
const first = await app.get(Reminders).remind('ann', inASecond);
const again = await app.get(Reminders).remind('ann', inASecond);
console.log(`${first.answer}, then ${again.answer}; due at ${new Date(first.scheduledFor).toISOString()}`);
