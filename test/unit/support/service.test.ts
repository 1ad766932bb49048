import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Service } from '../../../src/support/service.js';

/** Records its hooks and fails at once if two of them ever run at the same time. */
class Probe extends Service {
  readonly calls: string[] = [];
  onStartHook: (signal: AbortSignal) => Promise<void> = async () => undefined;
  onStopHook: () => Promise<void> = async () => undefined;
  #inside = 0;
  overlaps = 0;

  protected override async onStart(signal: AbortSignal): Promise<void> {
    await this.#alone('start', () => this.onStartHook(signal));
  }

  protected override async onStop(): Promise<void> {
    await this.#alone('stop', () => this.onStopHook());
  }

  async #alone(name: string, hook: () => Promise<void>): Promise<void> {
    this.calls.push(name);
    this.#inside += 1;
    if (this.#inside > 1) this.overlaps += 1;
    try {
      await hook();
    } finally {
      this.#inside -= 1;
    }
  }
}

function gate(): { promise: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

test('start and stop run each hook once, however often they are called', async () => {
  const probe = new Probe();
  await Promise.all([probe.start(), probe.start()]);
  expect(probe.started).toBe(true);
  await probe.start();
  await Promise.all([probe.stop(), probe.stop()]);
  await probe.stop();
  expect(probe.started).toBe(false);
  expect(probe.calls).toEqual(['start', 'stop']);
});

test('stop without start does nothing', async () => {
  const probe = new Probe();
  await probe.stop();
  expect(probe.calls).toEqual([]);
});

test('a service can be started again', async () => {
  const probe = new Probe();
  await probe.start();
  await probe.stop();
  await probe.start();
  expect(probe.started).toBe(true);
  await probe.stop();
  expect(probe.calls).toEqual(['start', 'stop', 'start', 'stop']);
});

test('stop while starting aborts the start, waits for it, and then stops', async () => {
  const probe = new Probe();
  const entered = gate();
  const held = gate();
  probe.onStartHook = async (signal) => {
    entered.open();
    await held.promise;
    probe.calls.push(`aborted ${signal.aborted}`);
  };
  const start = probe.start();
  await entered.promise;
  const stop = probe.stop();
  expect(probe.calls).toEqual(['start']);
  held.open();
  await expect(start).rejects.toMatchObject({ name: 'AbortError' });
  await stop;
  expect(probe.calls).toEqual(['start', 'aborted true', 'stop']);
  expect(probe.started).toBe(false);
});

test('start while stopping waits for the stop', async () => {
  const probe = new Probe();
  const held = gate();
  probe.onStopHook = () => held.promise;
  await probe.start();
  const stop = probe.stop();
  const again = probe.start();
  await turn();
  expect(probe.calls).toEqual(['start', 'stop']);
  held.open();
  await stop;
  await again;
  expect(probe.started).toBe(true);
  expect(probe.overlaps).toBe(0);
  await probe.stop();
});

test('a start taken back before the last stop was done never begins', async () => {
  const probe = new Probe();
  const held = gate();
  probe.onStopHook = () => held.promise;
  await probe.start();
  const firstStop = probe.stop();
  const again = probe.start();
  const secondStop = probe.stop();
  held.open();
  await expect(again).rejects.toMatchObject({ name: 'AbortError' });
  await Promise.all([firstStop, secondStop]);
  expect(probe.calls).toEqual(['start', 'stop']);
});

test('a start that fails frees what it took and rejects with its own error', async () => {
  const probe = new Probe();
  probe.onStartHook = async () => {
    throw new Error('no Redis');
  };
  probe.onStopHook = async () => {
    throw new Error('nothing to free');
  };
  await expect(probe.start()).rejects.toThrow('no Redis');
  expect(probe.calls).toEqual(['start', 'stop']);
  expect(probe.started).toBe(false);
  probe.onStartHook = async () => undefined;
  probe.onStopHook = async () => undefined;
  await probe.start();
  expect(probe.started).toBe(true);
  await probe.stop();
});

test('stop rejects with what onStop threw, and the service is stopped all the same', async () => {
  const probe = new Probe();
  probe.onStopHook = async () => {
    throw new Error('stuck');
  };
  await probe.start();
  await expect(probe.stop()).rejects.toThrow('stuck');
  expect(probe.started).toBe(false);
  probe.onStopHook = async () => undefined;
  await probe.start();
  await probe.stop();
});

test('start-stop stress: 10 callers, 50 rounds each, hooks pair up and never overlap', async () => {
  const probe = new Probe();
  let seed = 7;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const someTurns = async () => {
    for (let n = Math.floor(random() * 4); n > 0; n -= 1) await turn();
  };
  let failing = 0;
  probe.onStartHook = async () => {
    await someTurns();
    if (random() < 0.1) {
      failing += 1;
      throw new Error('planned');
    }
  };
  probe.onStopHook = someTurns;

  const outcomes = { started: 0, aborted: 0, failed: 0 };
  const caller = async () => {
    for (let round = 0; round < 50; round += 1) {
      const start = probe.start().then(
        () => {
          outcomes.started += 1;
        },
        (error: Error) => {
          outcomes[error.name === 'AbortError' ? 'aborted' : 'failed'] += 1;
        },
      );
      await someTurns();
      await probe.stop();
      await start;
    }
  };
  await Promise.all(Array.from({ length: 10 }, caller));

  expect(probe.overlaps).toBe(0);
  expect(probe.calls).toEqual(probe.calls.map((_, index) => (index % 2 === 0 ? 'start' : 'stop')));
  expect(probe.calls.length % 2).toBe(0);
  expect(probe.started).toBe(false);
  // The run has seen every way a start can go.
  expect(Math.min(outcomes.started, outcomes.aborted, outcomes.failed, failing)).toBeGreaterThan(0);
});
