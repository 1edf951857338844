import type { ConnectionOptions } from 'node:tls';
import { readPem } from './pem.ts';

/** How a server is verified, and how we show who we are. */
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
 * As node:tls takes it.
 * @throws an Error of node:fs that names the path, when a file cannot be read
 */
export function readClientTls(tls: ClientTls): Pick<ConnectionOptions, 'minVersion' | 'rejectUnauthorized'> & Shown {
  return {
    minVersion: tls.minVersion,
    rejectUnauthorized: !tls.insecure,
    ...given('ca', pem(tls.ca)),
    ...given('cert', pem(tls.cert)),
    ...given('key', pem(tls.key)),
    ...given('passphrase', tls.passphrase),
    ...given('servername', tls.serverName),
  };
}

type Shown = Partial<Record<'ca' | 'cert' | 'key' | 'passphrase' | 'servername', string>>;

function pem(value: string | undefined): string | undefined {
  return value === undefined ? undefined : readPem(value);
}

function given<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  const out: Partial<Record<K, string>> = {};
  if (value !== undefined) out[key] = value;
  return out;
}
