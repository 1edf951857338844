import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Config } from '../../config/schema/config-schema.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { readPem } from '../../http/tls/pem.ts';
import type { ServerTls } from '../../http/tls/server-certificate.ts';
import { readCertificate } from '../../http/tls/server-certificate.ts';
import type { CertificateExpiry } from '../../telemetry/metrics/certificate-metrics.ts';

/** The listener uses new files within this time. */
const READ_INTERVAL: Millis = 1000;

/**
 * When the certificates in use expire. The listener uses its files when they change, so they are read again, at most once a
 * second; those of upstreams are read with each new configuration; that of the store, at the start.
 */
export class CertificateExpiries {
  readonly #currentConfig: () => Config;
  readonly #clock: Clock;
  readonly #stateExpiry: CertificateExpiry | undefined;
  #upstreamExpiries: readonly CertificateExpiry[] = [];
  #upstreamsOf: Config | undefined;
  #listenerExpiry: CertificateExpiry | undefined;
  #listenerCert: string | undefined;
  #listenerReadAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(currentConfig: () => Config, clock: Clock) {
    this.#currentConfig = currentConfig;
    this.#clock = clock;
    const { state } = currentConfig();
    if ('tls' in state) this.#stateExpiry = readExpiry('state.tls.cert', state.tls?.cert);
  }

  all(): readonly CertificateExpiry[] {
    const config = this.#currentConfig();
    this.#readListener(config.listen.tls);
    this.#readUpstreams(config);
    return [this.#listenerExpiry, ...this.#upstreamExpiries, this.#stateExpiry].filter((each) => each !== undefined);
  }

  /** Files that cannot be used leave the last value, because the listener still uses that certificate. */
  #readListener(tls: ServerTls | undefined): void {
    const now = this.#clock.now();
    if (tls === undefined || now - this.#listenerReadAt < READ_INTERVAL) return;
    this.#listenerReadAt = now;
    try {
      const cert = readPem(tls.cert);
      if (cert === this.#listenerCert) return;
      createSecureContext(readCertificate(tls)); // throws, for example, while the key belongs to the previous certificate
      this.#listenerExpiry = readExpiry('listen.tls.cert', cert) ?? this.#listenerExpiry;
      this.#listenerCert = cert;
    } catch {
      // The listener logs the problem.
    }
  }

  #readUpstreams(config: Config): void {
    if (this.#upstreamsOf === config) return;
    this.#upstreamsOf = config;
    this.#upstreamExpiries = Object.entries(config.upstreams).flatMap(
      ([name, { tls }]) => readExpiry(`upstreams.${name}.tls.cert`, tls?.cert) ?? [],
    );
  }
}

/** The end of the first certificate of a PEM text or file. */
function readExpiry(setting: string, cert: string | undefined): CertificateExpiry | undefined {
  if (cert === undefined) return undefined;
  try {
    return { setting, expiresAt: Date.parse(new X509Certificate(readPem(cert)).validTo) };
  } catch {
    return undefined;
  }
}
