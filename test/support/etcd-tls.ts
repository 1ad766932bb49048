import { execFile } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ownFolder } from './child-guard.js';

const openssl = (...args: string[]) => promisify(execFile)('openssl', args);

/** An authority of our own, a server's certificate for 127.0.0.1 and a client's, as paths of PEM files. */
export async function makeCertificates() {
  const dir = await mkdtemp(join(tmpdir(), 'carillon-tls-'));
  ownFolder(dir);
  const at = (name: string) => join(dir, name);
  const key = ['-newkey', 'rsa:2048', '-nodes'];
  await openssl(
    'req',
    '-x509',
    ...key,
    '-days',
    '2',
    '-subj',
    '/CN=test',
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.crt'),
  );
  await writeFile(at('names'), 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n');
  for (const name of ['server', 'client']) {
    await openssl(
      'req',
      ...key,
      '-subj',
      `/CN=${name}`,
      '-keyout',
      at(`${name}.key`),
      '-out',
      at(`${name}.csr`),
    );
    const sign = [
      '-req',
      '-in',
      at(`${name}.csr`),
      '-CA',
      at('ca.crt'),
      '-CAkey',
      at('ca.key'),
      '-CAcreateserial',
    ];
    await openssl('x509', ...sign, '-days', '2', '-extfile', at('names'), '-out', at(`${name}.crt`));
  }
  return {
    ca: at('ca.crt'),
    server: { cert: at('server.crt'), key: at('server.key') },
    client: { cert: at('client.crt'), key: at('client.key') },
  };
}
