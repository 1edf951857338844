import type { Millis } from '../scalars.ts';
import type { AccountCredential } from './account-credential.ts';

/** What excludes an account from service, and for how long. */
export interface QuarantineSettings {
  /** Statuses that say that the upstream does not accept the credential. */
  readonly statuses: ReadonlySet<number>;
  /** Such responses in a row, ≥ 1, without another one between them. */
  readonly after: number;
  /** Time to the first probe; it doubles after each failed probe, up to `maxInterval`. */
  readonly interval: Millis;
  readonly maxInterval: Millis;
}

/** What changed with an outcome. */
export type AccountChange = 'quarantined' | 'probe-failed' | 'returned';

interface Quarantine {
  readonly since: Millis;
  /** A response to a request that was sent earlier shows nothing. */
  sentFrom: Millis;
  interval: Millis;
  probeAt: Millis;
}

/** One account of an upstream: its credential, the requests in flight with it, and its quarantine. */
export class Account {
  readonly name: string;
  #credential: AccountCredential;
  inFlight = 0;
  /** The end of the longest Retry-After that this process has received with it. A shared limit stops only after a round trip. */
  stoppedUntil: Millis = Number.NEGATIVE_INFINITY;
  /** The ordinal of its last choice among all choices of the pool; 0 before the first. */
  lastUse = 0;
  #rejectionsInRow = 0;
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
    this.#rejectionsInRow = 0;
    return wasQuarantined;
  }

  get isQuarantined(): boolean {
    return this.#quarantine !== undefined;
  }

  /** When the next request may be sent as a probe; −Infinity if it is not quarantined. */
  get probeAt(): Millis {
    return this.#quarantine?.probeAt ?? Number.NEGATIVE_INFINITY;
  }

  /** When the quarantine began; undefined if it is not quarantined. */
  get quarantinedSince(): Millis | undefined {
    return this.#quarantine?.since;
  }

  /** A request is sent as a probe: the next one follows after the interval, whatever becomes of this one. */
  beginProbe(now: Millis): void {
    const quarantine = this.#quarantine;
    if (quarantine === undefined) return;
    quarantine.sentFrom = now;
    quarantine.probeAt = now + quarantine.interval;
  }

  /** A response that accepts the credential. @param sentAt when its request was sent */
  onAccepted(sentAt: Millis): AccountChange | undefined {
    this.#rejectionsInRow = 0;
    if (this.#quarantine === undefined || sentAt < this.#quarantine.sentFrom) return undefined;
    this.#quarantine = undefined;
    return 'returned';
  }

  /** A response that rejects the credential. @param sentAt when its request was sent */
  onRejected(sentAt: Millis, settings: QuarantineSettings, now: Millis): AccountChange | undefined {
    const quarantine = this.#quarantine;
    if (quarantine !== undefined) {
      if (sentAt < quarantine.sentFrom) return undefined;
      quarantine.interval = Math.min(settings.maxInterval, 2 * quarantine.interval);
      quarantine.probeAt = now + quarantine.interval;
      quarantine.sentFrom = quarantine.probeAt;
      return 'probe-failed';
    }
    this.#rejectionsInRow += 1;
    return this.#rejectionsInRow < settings.after ? undefined : this.quarantine(settings, now);
  }

  /** Excludes the account from service until a probe is accepted. */
  quarantine({ interval }: QuarantineSettings, now: Millis): AccountChange | undefined {
    if (this.#quarantine !== undefined) return undefined;
    const probeAt = now + interval;
    this.#quarantine = { since: now, sentFrom: probeAt, interval, probeAt };
    return 'quarantined';
  }
}
