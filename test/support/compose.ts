import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface ComposeService {
  command?: string[];
  entrypoint?: string[];
  environment?: Record<string, string>;
  volumes?: string[];
  healthcheck?: { test?: string[]; disable?: boolean };
  deploy?: { replicas?: number };
  depends_on?: Record<string, unknown>;
}

/** docker-compose.yml as Compose reads it: anchors and merge keys are resolved. */
export function readCompose(): { document: unknown; services: Record<string, ComposeService> } {
  const document = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Record<string, ComposeService>;
  };
  return { document, services: document.services };
}

/**
 * Where services of a compose file stand without Docker: each `<service>:<port>`, and what a service itself listens on,
 * is a port of 127.0.0.1.
 */
export class Loopback {
  constructor(private readonly ports: ReadonlyMap<string, number>) {}

  /** @param place such as `etcd1:2379` */
  port(place: string): number {
    const port = this.ports.get(place);
    if (port === undefined) throw new Error(`no loopback port stands for ${place}`);
    return port;
  }

  /** A text of the file, as the service `name` would be given it here. */
  of(name: string, text: string): string {
    return text.replace(/([a-z0-9.]+):(\d{4,5})/g, (place, host: string, port: string) => {
      const known = host === '0.0.0.0' ? `${name}:${port}` : place;
      return `127.0.0.1:${this.port(known)}`;
    });
  }
}
