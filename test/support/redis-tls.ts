import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { freePort } from './free-port.js';
import { type RedisServer, startRedis } from './redis-server.js';

export interface TlsRedis {
  server: RedisServer;
  /** The port that speaks TLS. */
  port: number;
  /** The certificate, which signed itself: clients must be given it. */
  ca: string;
}

/** A redis-server that also listens with TLS; its certificate is for 127.0.0.1, made by `openssl`. */
export async function startTlsRedis(): Promise<TlsRedis> {
  const port = await freePort();
  const server = await startRedis();
  const certificate = join(server.dir, 'tls.crt');
  const key = join(server.dir, 'tls.key');
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1'];
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1'];
  await promisify(execFile)('openssl', [...request, ...names, '-keyout', key, '-out', certificate]);
  const client = new Redis(server.url);
  const settings = {
    'tls-cert-file': certificate,
    'tls-key-file': key,
    'tls-ca-cert-file': certificate,
    'tls-auth-clients': 'no',
    'tls-port': String(port),
  };
  await client.call('CONFIG', 'SET', ...Object.entries(settings).flat());
  client.disconnect();
  return { server, port, ca: await readFile(certificate, 'utf8') };
}
