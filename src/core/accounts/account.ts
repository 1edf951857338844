import type { Millis } from '../scalars.ts';
import type { AccountCredential } from './account-credential.ts';
import { RejectionSeries, type RejectedRequester } from './rejection-series.ts';

/** What excludes an account from service, and for how long. */
export interface QuarantineSettings {
  /** Statuses that say that the upstream does not accept the credential. */
  readonly statuses: ReadonlySet<number>;
  /** Number of such responses in a row, to one client or to several unrelated ones, ≥ 1. */
  readonly after: number;
  /** Time to the first probe; it doubles after each failed probe, up to `maxInterval`. */
  readonly interval: Millis;
  readonly maxInterval: Millis;
}

/** What changed with an outcome. */
export type AccountChange = 'quarantined' | 'probe-failed' | 'returned';

interface Quarantine {
  readonly since: Millis;
  /** When the next client that it does not exclude tries the account although others are in service. */
  trialAt: Millis;
  /** A rejection of a request that was sent earlier is not that of a probe. */
  sentFrom: Millis;
  interval: Millis;
  probeAt: Millis;
}

/** How a client may use an account. */
export interface AccountUse {
  /** When the client may send a probe, if it is excluded; −Infinity if it is not. */
  readonly probeAt: Millis;
  /** When it may try an account that others are excluded from, although another is in service; undefined for an account in service. */
  readonly trialAt: Millis | undefined;
}

/** An attempt whose credential the upstream rejected. */
export interface RejectedAttempt {
  readonly sentAt: Millis;
  /** As it was sent; undefined if it is not known. */
  readonly credential: AccountCredential | undefined;
}

const IN_SERVICE: AccountUse = { probeAt: Number.NEGATIVE_INFINITY, trialAt: undefined };

/** One account of an upstream: its credential, the requests in flight with it, and its quarantine. */
export class Account {
  readonly name: string;
  #credential: AccountCredential;
  inFlight = 0;
  /** The end of the longest Retry-After that this process has received with it. A shared limit stops only after a round trip. */
  stoppedUntil: Millis = Number.NEGATIVE_INFINITY;
  /** The ordinal of its last choice among all choices of the pool; 0 before the first. */
  lastUse = 0;
  readonly #rejections = new RejectionSeries();
  /** When the latest request that was accepted, or rejected, was sent. */
  #acceptedSentAt: Millis = Number.NEGATIVE_INFINITY;
  #rejectedSentAt: Millis = Number.NEGATIVE_INFINITY;
  #quarantine: Quarantine | undefined;

  constructor(name: string, credential: AccountCredential) {
    this.name = name;
    this.#credential = credential;
  }

  get credential(): AccountCredential {
    return this.#credential;
  }

  /** Replaces the credential. A new value ends the quarantine of the old one: returns whether it did. */
  rotate(credential: AccountCredential): boolean {
    if (this.#credential.isSame(credential)) return false;
    this.#credential = credential;
    const wasQuarantined = this.isQuarantined;
    this.#quarantine = undefined;
    this.#rejections.clear();
    return wasQuarantined;
  }

  get isQuarantined(): boolean {
    return this.#quarantine !== undefined;
  }

  /** When the next request of an excluded client may be sent as a probe; −Infinity if the account is not quarantined. */
  get probeAt(): Millis {
    return this.#quarantine?.probeAt ?? Number.NEGATIVE_INFINITY;
  }

  /** When the quarantine began; undefined if it is not quarantined. */
  get quarantinedSince(): Millis | undefined {
    return this.#quarantine?.since;
  }

  /**
   * A quarantine excludes the clients whose own requests were rejected: they may have provoked it. For others the account is in service;
   * or the last choice, if unrelated clients were rejected.
   */
  useBy(client: string, { after }: Pick<QuarantineSettings, 'after'>): AccountUse {
    const quarantine = this.#quarantine;
    if (quarantine === undefined) return IN_SERVICE;
    const { probeAt, trialAt } = quarantine;
    if (this.#rejections.countOf(client) >= after) return { probeAt, trialAt: undefined };
    return this.#rejections.isCommon ? { ...IN_SERVICE, trialAt } : IN_SERVICE;
  }

  /** An excluded client sends a probe: the next one follows after the interval, whatever becomes of this one. */
  beginProbe(now: Millis): void {
    const quarantine = this.#quarantine;
    if (quarantine === undefined) return;
    quarantine.sentFrom = now;
    quarantine.probeAt = now + quarantine.interval;
  }

  /** A client that is not excluded tries the account. */
  beginTrial({ interval }: Pick<QuarantineSettings, 'interval'>, now: Millis): void {
    if (this.#quarantine !== undefined) this.#quarantine.trialAt = now + interval;
  }

  /** A response that accepts the credential. @param sentAt when its request was sent */
  onAccepted(sentAt: Millis): AccountChange | undefined {
    this.#acceptedSentAt = Math.max(this.#acceptedSentAt, sentAt);
    if (this.#quarantine === undefined) {
      this.#rejections.clear();
      return undefined;
    }
    // The credential may have been revoked after it was sent.
    if (sentAt <= this.#quarantine.since || sentAt < this.#rejectedSentAt) return undefined;
    this.#quarantine = undefined;
    this.#rejections.clear();
    return 'returned';
  }

  /** A response that rejects the credential. @param sentAt when its request was sent */
  onRejected(
    by: RejectedRequester,
    sentAt: Millis,
    settings: QuarantineSettings,
    now: Millis,
  ): AccountChange | undefined {
    const { after } = settings;
    this.#rejectedSentAt = Math.max(this.#rejectedSentAt, sentAt);
    const quarantine = this.#quarantine;
    const wasExcluded = this.#rejections.countOf(by.client) >= after;
    const count = this.#rejections.add(by, 1);
    if (quarantine === undefined) {
      const isEnough = count >= after || (this.#rejections.isCommon && this.#rejections.count >= after);
      return isEnough ? this.#begin(settings, now) : undefined;
    }
    if (!wasExcluded || sentAt < quarantine.sentFrom) return undefined;
    quarantine.interval = Math.min(settings.maxInterval, 2 * quarantine.interval);
    quarantine.probeAt = now + quarantine.interval;
    quarantine.sentFrom = quarantine.probeAt;
    return 'probe-failed';
  }

  /**
   * Another account was accepted for a request that was rejected with this one: excludes its client at once, unless a request that was
   * sent after it has been accepted. @param sentAt when the rejected request was sent
   */
  onProvenInvalid(
    by: RejectedRequester,
    sentAt: Millis,
    settings: QuarantineSettings,
    now: Millis,
  ): AccountChange | undefined {
    if (this.#acceptedSentAt > sentAt) return undefined;
    this.#rejections.add(by, settings.after);
    return this.#quarantine === undefined ? this.#begin(settings, now) : undefined;
  }

  #begin({ interval }: QuarantineSettings, now: Millis): AccountChange {
    const probeAt = now + interval;
    this.#quarantine = { since: now, trialAt: probeAt, sentFrom: probeAt, interval, probeAt };
    return 'quarantined';
  }
}
