import type { ConnectionOptions } from 'node:tls';
import { readPem } from './pem.ts';

/** How a server is verified, and the client certificate. */
export interface ClientTls {
  /** PEM text, or the path of a PEM file. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly passphrase?: string | undefined;
  readonly serverName?: string | undefined;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly insecure: boolean;
}

/**
 * The options of node:tls.
 * @throws an Error of node:fs that names the path, when a file cannot be read
 */
export function readClientTls(
  tls: ClientTls,
): Pick<ConnectionOptions, 'minVersion' | 'rejectUnauthorized'> & TlsIdentity {
  return {
    minVersion: tls.minVersion,
    rejectUnauthorized: !tls.insecure,
    ...ifSet('ca', readIfSet(tls.ca)),
    ...ifSet('cert', readIfSet(tls.cert)),
    ...ifSet('key', readIfSet(tls.key)),
    ...ifSet('passphrase', tls.passphrase),
    ...ifSet('servername', tls.serverName),
  };
}

type TlsIdentity = Partial<Record<'ca' | 'cert' | 'key' | 'passphrase' | 'servername', string>>;

function readIfSet(value: string | undefined): string | undefined {
  return value === undefined ? undefined : readPem(value);
}

function ifSet<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  const out: Partial<Record<K, string>> = {};
  if (value !== undefined) out[key] = value;
  return out;
}
