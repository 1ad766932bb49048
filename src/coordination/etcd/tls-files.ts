import { readFileSync } from 'node:fs';
import { CarillonError } from '../../domain/errors.js';
import type { EtcdConnection } from './etcd-options.js';

/** The certificates of a connection. @throws CarillonError INVALID_OPTION for a file that cannot be read. */
export function readTls({ ca, cert, key }: NonNullable<EtcdConnection['tls']>) {
  return {
    // etcd3 wants one; without it Node's own list of authorities counts.
    rootCertificate: (ca === undefined ? undefined : pem(ca, 'ca')) as Buffer,
    ...(cert === undefined ? {} : { certChain: pem(cert, 'cert') }),
    ...(key === undefined ? {} : { privateKey: pem(key, 'key') }),
  };
}

/** A PEM text, or the content of the file of that path. */
function pem(value: string, name: string): Buffer {
  if (value.includes('-----BEGIN')) return Buffer.from(value);
  try {
    return readFileSync(value);
  } catch (cause) {
    throw new CarillonError('INVALID_OPTION', `the file of etcd.tls.${name} cannot be read`, {
      field: `etcd.tls.${name}`,
      given: value,
      todo: 'Give the path of a PEM file, or its text.',
      cause,
    });
  }
}
