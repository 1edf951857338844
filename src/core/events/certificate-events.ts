import type { Millis } from '../scalars.ts';

/** A certificate of the configuration is about to expire, has expired, or was replaced after one of these events. */
export interface CertificateEvent {
  readonly type: 'certificate';
  /** The path of the setting, such as `listen.tls.cert`. */
  readonly setting: string;
  readonly status: 'expires' | 'expired' | 'renewed';
  /** When the certificate in use expires, in milliseconds of the epoch. */
  readonly expiresAt: Millis;
  /** Milliseconds until then; negative after it. */
  readonly left: Millis;
}
