import type { Millis } from '../scalars.ts';
import type { AccountCredential } from './account-credential.ts';
import { MAX_NOTICE_CLIENTS, type AccountNotice, type SharedQuarantine } from './account-notice.ts';
import type { QuarantineSettings } from './quarantine-settings.ts';
import { boundTimes, Quarantine } from './quarantine.ts';
import { RejectionSeries, type RejectedRequester } from './rejection-series.ts';

/** What changed with an outcome. */
export type AccountChange = 'quarantined' | 'probe-failed' | 'returned';

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
  /** When the latest request that was accepted was sent, in any process that has reported it. */
  #acceptedSentAt: Millis = Number.NEGATIVE_INFINITY;
  /** Unless its evidence is refuted by `#acceptedSentAt`. */
  #quarantine: Quarantine | undefined;
  /** This process has reported that the quarantine began, so it reports the end, whichever process ends it. */
  #isBeginReported = false;
  readonly #onChanged: (() => void) | undefined;

  /** @param onChanged called if other processes have to know of a change; undefined if there are none */
  constructor(name: string, credential: AccountCredential, onChanged?: () => void) {
    this.name = name;
    this.#credential = credential;
    this.#onChanged = onChanged;
  }

  get credential(): AccountCredential {
    return this.#credential;
  }

  /** Replaces the credential. A new value ends the quarantine of the old one: returns whether it did. */
  rotate(credential: AccountCredential): boolean {
    if (this.#credential.isSame(credential)) return false;
    const wasQuarantined = this.retireCredential();
    this.#credential = credential;
    this.#acceptedSentAt = Number.NEGATIVE_INFINITY;
    return wasQuarantined;
  }

  /**
   * Ends the quarantine, because the configuration has the credential no longer. Returns whether there was one. Other processes must
   * not keep it for those that start later: the credential may be configured again.
   */
  retireCredential(): boolean {
    const wasQuarantined = this.isQuarantined;
    this.#endQuarantine();
    if (wasQuarantined) this.#onChanged?.();
    return wasQuarantined;
  }

  get isQuarantined(): boolean {
    return this.#quarantine !== undefined;
  }

  /** Whether it is quarantined, and unrelated clients were rejected. */
  get isCommonlyRejected(): boolean {
    return this.isQuarantined && this.#rejections.isCommon;
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
    if (this.#rejections.countOf(client) >= after) return { probeAt: quarantine.probeAt, trialAt: undefined };
    return this.#rejections.isCommon ? { ...IN_SERVICE, trialAt: quarantine.trialAt } : IN_SERVICE;
  }

  /** A probe of an excluded client, or a trial of another one, is admitted. It may still be refused, or wait. */
  beginUse(use: 'probe' | 'trial', now: Millis): void {
    if (use === 'probe') this.#quarantine?.reserveProbe(now);
    else this.#quarantine?.reserveTrial(now);
  }

  /** The probe or trial is being sent: the next one follows after the interval, in all processes. */
  onUseSent(use: 'probe' | 'trial', now: Millis): void {
    if (this.#quarantine === undefined) return;
    if (use === 'probe') this.#quarantine.onProbeSent(now);
    else this.#quarantine.onTrialSent(now);
    this.#onChanged?.();
  }

  /** A response that accepts the credential. @param sentAt when its request was sent */
  onAccepted(sentAt: Millis): AccountChange | undefined {
    if (!this.#accept(sentAt)) return undefined;
    this.#onChanged?.();
    return 'returned';
  }

  /** A response that rejects the credential. @param sentAt when its request was sent */
  onRejected(
    by: RejectedRequester,
    sentAt: Millis,
    settings: QuarantineSettings,
    now: Millis,
  ): AccountChange | undefined {
    if (sentAt < this.#acceptedSentAt) return undefined; // a request that was sent later was accepted
    const { after } = settings;
    const quarantine = this.#quarantine;
    const wasCommon = this.#rejections.isCommon;
    const wasExcluded = this.#rejections.countOf(by.client) >= after;
    const { count, firstSentAt } = this.#rejections.add(by, 1, sentAt);
    const { all, isCommon } = this.#rejections;
    if (quarantine === undefined) {
      if (count >= after) return this.#begin(firstSentAt, settings, now);
      return isCommon && all.count >= after ? this.#begin(all.firstSentAt, settings, now) : undefined;
    }
    if (wasExcluded && quarantine.isProbe(sentAt)) {
      quarantine.onProbeFailed(sentAt, settings.maxInterval, now);
      this.#isBeginReported = true;
      this.#onChanged?.();
      return 'probe-failed';
    }
    const isExcludedNow = count >= after && !wasExcluded;
    if (isExcludedNow || isCommon !== wasCommon) this.#onChanged?.();
    return undefined;
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
    const wasExcluded = this.#rejections.countOf(by.client) >= settings.after;
    this.#rejections.add(by, settings.after, sentAt);
    if (this.#quarantine === undefined) return this.#begin(sentAt, settings, now);
    if (!wasExcluded) this.#onChanged?.();
    return undefined;
  }

  /** What other processes have to know. */
  shared({ after }: Pick<QuarantineSettings, 'after'>): Pick<AccountNotice, 'acceptedSentAt' | 'quarantine'> {
    const acceptedSentAt = Number.isFinite(this.#acceptedSentAt) ? this.#acceptedSentAt : undefined;
    if (this.#quarantine === undefined) return { acceptedSentAt };
    const { isCommon, fairnessKey } = this.#rejections;
    const clients = this.#rejections.clientsWith(after, MAX_NOTICE_CLIENTS);
    return { acceptedSentAt, quarantine: { ...this.#quarantine.times, isCommon, fairnessKey, clients } };
  }

  /**
   * Merges what another process knows of the same credential, and reports what that process lacks. Returns `returned` if that ends a
   * quarantine whose begin this process has reported. @param part of the spread by which it delays its next probe, in [0, 1]
   */
  merge(
    { acceptedSentAt, quarantine }: Pick<AccountNotice, 'acceptedSentAt' | 'quarantine'>,
    settings: QuarantineSettings,
    part: number,
    now: Millis,
  ): Extract<AccountChange, 'returned'> | undefined {
    const wasReported = this.#isBeginReported;
    if (acceptedSentAt !== undefined && Number.isFinite(acceptedSentAt)) this.#accept(Math.min(acceptedSentAt, now));
    const isUnknownThere = quarantine === undefined ? this.isQuarantined : this.#adopt(quarantine, settings, part, now);
    if (isUnknownThere) this.#onChanged?.();
    this.#isBeginReported = wasReported && this.isQuarantined; // later evidence may have replaced what the notice refutes
    return wasReported && !this.isQuarantined ? 'returned' : undefined;
  }

  /** Returns whether the other process lacks something: a later accepted request, or the rejections of unrelated clients. */
  #adopt(other: SharedQuarantine, settings: QuarantineSettings, part: number, now: Millis): boolean {
    const times = boundTimes(other, settings, now);
    if (times === undefined) return false;
    if (this.#acceptedSentAt > times.evidenceSentAt) return true;
    const { fairnessKey, clients, isCommon } = other;
    const missing = clients.filter((client) => this.#rejections.countOf(client) < settings.after);
    for (const client of missing) this.#rejections.add({ client, fairnessKey }, settings.after, times.evidenceSentAt);
    if (isCommon) this.#rejections.markCommon();
    if (this.#quarantine === undefined) this.#quarantine = new Quarantine(times, settings, part);
    else this.#quarantine.merge(times, part);
    return this.#rejections.isCommon !== isCommon;
  }

  /** Returns whether this ends a quarantine. */
  #accept(sentAt: Millis): boolean {
    this.#acceptedSentAt = Math.max(this.#acceptedSentAt, sentAt);
    const quarantine = this.#quarantine;
    if (quarantine === undefined) {
      if (sentAt >= this.#rejections.all.firstSentAt) this.#rejections.clear();
      return false;
    }
    if (!quarantine.isRefutedBy(this.#acceptedSentAt)) return false;
    this.#endQuarantine();
    return true;
  }

  #endQuarantine(): void {
    this.#quarantine = undefined;
    this.#isBeginReported = false;
    this.#rejections.clear();
  }

  #begin(evidenceSentAt: Millis, settings: QuarantineSettings, now: Millis): AccountChange {
    const { interval } = settings;
    const probeAt = now + interval;
    const times = { since: now, evidenceSentAt, interval, probeAt, trialAt: probeAt };
    this.#quarantine = new Quarantine(times, settings, this.#onChanged === undefined ? undefined : 0);
    this.#isBeginReported = true;
    this.#onChanged?.();
    return 'quarantined';
  }
}
