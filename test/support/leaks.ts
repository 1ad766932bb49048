import { subscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import type { ServiceEvent } from '../../src/support/service.js';
import { eventually } from './eventually.js';

const running = new Set<ServiceEvent['service']>();

subscribe('carillon:service', (message) => {
  const { service, change } = message as ServiceEvent;
  if (change === 'starting') running.add(service);
  else running.delete(service);
});

/** The services that run now. */
export function runningServices(): Set<ServiceEvent['service']> {
  return new Set(running);
}

/** Stops and reports the services that run now and did not at `before`. */
export async function failOnLeakedServices(before: ReadonlySet<ServiceEvent['service']>): Promise<void> {
  const leaked = [...running].filter((service) => !before.has(service));
  if (leaked.length === 0) return;
  await Promise.allSettled(leaked.map((service) => service.stop()));
  throw new Error(`left running: ${leaked.map((service) => service.constructor.name).join(', ')}`);
}

/** Reports TCP connections that this process made and still holds; a closing one has a second to go. */
export async function failOnLeakedConnections(): Promise<void> {
  let open: string[] = [];
  await eventually(
    () => {
      open = openConnections();
      return open.length === 0;
    },
    { timeout: 1_000 },
  ).catch(() => {
    throw new Error(`connections left open to ${open.join(', ')}`);
  });
}

function openConnections(): string[] {
  // Undocumented and stable since Node 0.x; getActiveResourcesInfo() tells no addresses.
  const { _getActiveHandles } = process as unknown as { _getActiveHandles(): unknown[] };
  return _getActiveHandles
    .call(process)
    .filter((handle) => handle instanceof Socket)
    .filter((socket) => socket.remotePort !== undefined)
    .map((socket) => `${socket.remoteAddress}:${socket.remotePort}`);
}
