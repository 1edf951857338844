import { X509Certificate } from 'node:crypto';
import type { Config } from '../config/schema/config-schema.ts';
import type { Clock, Millis } from '../core/scalars.ts';
import { readPem } from '../http/tls/pem.ts';
import type { CertificateExpiry } from '../telemetry/metrics/certificate-metrics.ts';

/** The files are small, and change a few times a year. */
const READ_INTERVAL: Millis = 60_000;

/** Reads when the certificates of a configuration expire, at most once a minute. */
export class CertificateExpiries {
  readonly #currentConfig: () => Config;
  readonly #clock: Clock;
  /** A file that cannot be read any more leaves its last value, because the process still uses that certificate. */
  readonly #known = new Map<string, CertificateExpiry>();
  #read: { readonly config: Config; readonly at: Millis } | undefined;

  constructor(currentConfig: () => Config, clock: Clock) {
    this.#currentConfig = currentConfig;
    this.#clock = clock;
  }

  all(): Iterable<CertificateExpiry> {
    const config = this.#currentConfig();
    const now = this.#clock.now();
    const isFresh = this.#read?.config === config && now - this.#read.at < READ_INTERVAL;
    if (!isFresh) this.#readAll(config, now);
    return this.#known.values();
  }

  #readAll(config: Config, at: Millis): void {
    this.#read = { config, at };
    const certificates = listCertificates(config);
    for (const setting of this.#known.keys()) if (!certificates.has(setting)) this.#known.delete(setting);
    for (const [setting, cert] of certificates) {
      const expiresAt = readExpiry(cert);
      if (expiresAt !== undefined) this.#known.set(setting, { setting, expiresAt });
    }
  }
}

/** By the path of the setting. */
function listCertificates({ listen, upstreams, state }: Config): ReadonlyMap<string, string> {
  const certificates = new Map<string, string>();
  if (listen.tls !== undefined) certificates.set('listen.tls.cert', listen.tls.cert);
  for (const [name, { tls }] of Object.entries(upstreams)) {
    if (tls?.cert !== undefined) certificates.set(`upstreams.${name}.tls.cert`, tls.cert);
  }
  if ('tls' in state && state.tls?.cert !== undefined) certificates.set('state.tls.cert', state.tls.cert);
  return certificates;
}

/** The end of the first certificate of a PEM text or file, in milliseconds of the epoch. */
function readExpiry(cert: string): Millis | undefined {
  try {
    return Date.parse(new X509Certificate(readPem(cert)).validTo);
  } catch {
    return undefined;
  }
}
