import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';
import type { CertificateExpiry } from '../../telemetry/metrics/certificate-metrics.ts';

const HOUR: Millis = 3_600_000;
const DAY: Millis = 24 * HOUR;
/** There is an event when this time is left, the first 7 days ahead, as the alert is; and at the expiry itself. */
const NOTICES: readonly Millis[] = [7 * DAY, DAY, HOUR];
/** The longest time between two checks: files may be replaced, and the wall clock may be set. */
const CHECK_INTERVAL: Millis = 5000;

/** Emits an event when a certificate is about to expire, when it expires, and when it was replaced after that. */
export class CertificateWatch {
  readonly #expiries: () => Iterable<CertificateExpiry>;
  readonly #wallClock: () => Millis;
  readonly #listen: EventSink;
  /** By setting: how many of the notices have become due. */
  readonly #stages = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** @param wallClock milliseconds of the epoch */
  constructor(expiries: () => Iterable<CertificateExpiry>, wallClock: () => Millis, listen: EventSink) {
    this.#expiries = expiries;
    this.#wallClock = wallClock;
    this.#listen = listen;
  }

  /** Checks now and from now on, without keeping the process alive. */
  readonly start = (): void => {
    const next = Math.min(CHECK_INTERVAL, this.#check());
    this.#timer = setTimeout(this.start, Math.max(1, next)).unref();
  };

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Returns the time until the first expiry that is still ahead. */
  #check(): Millis {
    const now = this.#wallClock();
    let nextExpiry = Number.POSITIVE_INFINITY;
    const known = new Set<string>();
    for (const { setting, expiresAt } of this.#expiries()) {
      known.add(setting);
      const left = expiresAt - now;
      if (left > 0) nextExpiry = Math.min(nextExpiry, left);
      const stage = left <= 0 ? NOTICES.length + 1 : NOTICES.filter((notice) => left <= notice).length;
      const before = this.#stages.get(setting) ?? 0;
      this.#stages.set(setting, stage);
      if (stage === before) continue;
      const status = left <= 0 ? 'expired' : stage === 0 ? 'renewed' : 'expires';
      this.#listen({ type: 'certificate', setting, status, expiresAt, left });
    }
    for (const setting of this.#stages.keys()) if (!known.has(setting)) this.#stages.delete(setting);
    return nextExpiry;
  }
}
