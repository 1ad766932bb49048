import { fileURLToPath } from 'node:url';
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import type { ScriptChoices } from '../../src/redis/script-source.js';
import type { Readiness } from '../../src/scheduler/dispatch-report.js';
import { eventually } from './eventually.js';
import { type NodeProcess, spawnNode } from './node-process.js';
import type { Spine } from './spine.js';

/** A scheduler in a process of its own, for a test that kills, stops or watches it. */
export class SchedulerProcess {
  private constructor(readonly node: NodeProcess) {}

  /** Resolves when it serves or stands by. `over.redis` may lead through a proxy. */
  static async start(spine: Spine, over: SchedulerOptions = {}): Promise<SchedulerProcess> {
    const scheduler = SchedulerProcess.begin(spine, over);
    await scheduler.node.waitForLine('started');
    return scheduler;
  }

  /** Starts it and waits for nothing. */
  static begin(
    spine: Spine,
    over: SchedulerOptions = {},
    { env = {} }: { env?: NodeJS.ProcessEnv } = {},
  ): SchedulerProcess {
    const options: SchedulerOptions = {
      redis: spine.url,
      namespace: spine.namespace,
      prefix: spine.prefix,
      ...over,
    };
    return new SchedulerProcess(spawnNode(fixture('spine-scheduler'), [JSON.stringify(options)], env));
  }

  /** Resolves when it serves all buckets. `timeout` in ms. */
  async tookOver(timeout = 60_000): Promise<void> {
    await this.node.waitForLine('"message":"took over"', timeout);
  }

  /** Resolves when it says that it leads no more. */
  async leadsNoMore(timeout = 60_000): Promise<string> {
    return this.node.waitForLine('"message":"leads no more"', timeout);
  }

  /** Its wall clock; ms. */
  async wall(): Promise<number> {
    const asked = this.node.lines.length;
    this.node.writeLine('clock');
    const line = await eventually(
      () => this.node.lines.slice(asked).find((text) => text.startsWith('{"wall"')) ?? false,
    );
    return (JSON.parse(line) as { wall: number }).wall;
  }

  /** What it last said of itself. */
  get readiness(): Readiness | undefined {
    const line = this.node.lines.findLast((text) => text.startsWith('{"readiness"'));
    return line === undefined ? undefined : (JSON.parse(line) as { readiness: Readiness }).readiness;
  }

  /** How many runs it says it moved. */
  get popped(): number {
    return this.readiness?.popped ?? 0;
  }
}

/** A loop of pops in a process of its own, with the fence of `token`; it never asks whether it still leads. */
export async function startMover(
  { namespace, prefix }: Spine,
  url: string,
  choices: ScriptChoices,
  token: number,
): Promise<NodeProcess> {
  const mover = spawnNode(fixture('spine-mover'), [
    JSON.stringify({ url, namespace, prefix, choices, token }),
  ]);
  await mover.waitForLine('moving');
  return mover;
}

export function fixture(name: string): string {
  return fileURLToPath(new URL(`./${name}.fixture.ts`, import.meta.url));
}
