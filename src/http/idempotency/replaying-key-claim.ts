import type { KeyClaim, KeyClaimEnd, KeyClaimListener } from '../../core/idempotency/key-store.ts';
import type { KeptResponseMatch, KeyRecord } from '../../core/idempotency/key-record.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Millis } from '../../core/scalars.ts';
import { firstHeaderValue } from '../headers/raw-headers.ts';
import type { ResponseHead } from '../response/response-head.ts';
import { type KeptResponse, MAX_KEPT_BYTES, selectKeptHeaders } from './kept-response.ts';
import type { KeptResponses } from './kept-responses.ts';
import { ResponseCapture } from './response-capture.ts';

/** What identifies a repeat of a request. */
export interface RepeatIdentity {
  /** The id of the response: of the write, and of the credentials of its client, so only the same client gets it. */
  readonly id: string;
  /** A digest of the query and body; undefined if the body is not known whole: then no response is kept. */
  readonly fingerprint: string | undefined;
  readonly acceptEncoding: string;
}

export interface ReplayingKeyClaimOptions {
  readonly claim: KeyClaim;
  readonly responses: KeptResponses;
  readonly identity: RepeatIdentity;
  /** The key was made for this request, so there is no earlier response. */
  readonly isNew: boolean;
  /** How long a response is kept. */
  readonly lifetime: Millis;
  /** The statuses of a result that is not ready (`poll`): a repeat asks for the result. */
  readonly notReady: ReadonlySet<number> | undefined;
  /** See `selectKeptHeaders`. */
  readonly pacingHeaders: ReadonlySet<string> | undefined;
}

/** What happens to a claim once the response is kept. */
interface DelayedEnd {
  readonly end: KeyClaimEnd;
  isUndelivered: boolean;
  isClosed: boolean;
}

/**
 * A claim to a key whose response is kept for repeats. With the key it gets the kept response, if there is one. A final response
 * is kept before the key is free, so that a request that waits for the key gets it.
 */
export class ReplayingKeyClaim implements KeyClaim {
  readonly #options: ReplayingKeyClaimOptions;
  readonly #claim: KeyClaim;
  #kept: KeptResponse | undefined;
  #hasBegun = false;
  #head: ResponseHead | undefined;
  #capture: ResponseCapture | undefined;
  /** The body of the response; undefined if it is incomplete or cannot be kept. */
  #body: Buffer | undefined;
  /** The end of the claim, while the response is being kept. */
  #delayed: DelayedEnd | undefined;

  constructor(options: ReplayingKeyClaimOptions) {
    this.#options = options;
    this.#claim = options.claim;
  }

  get endpoint(): string | undefined {
    return this.#claim.endpoint;
  }

  get hasWrite(): boolean {
    return this.#claim.hasWrite;
  }

  get isCurrent(): boolean {
    return this.#claim.isCurrent;
  }

  /** The response to be sent; undefined if none is kept for this request. */
  get keptResponse(): KeptResponse | undefined {
    return this.#kept;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    const onClaimed: KeyClaimListener['onClaimed'] = (record, hasWaited) => {
      if (isFirst) this.#recall(record, (match) => listener.onClaimed(record, hasWaited, match));
      else listener.onClaimed(record, hasWaited);
    };
    const onClaimRefused: KeyClaimListener['onClaimRefused'] = (why, mayHaveTakenEffect) =>
      listener.onClaimRefused(why, mayHaveTakenEffect);
    this.#claim.begin({ onClaimed, onClaimRefused }, deadline);
  }

  /**
   * Collects the body of a response while it is forwarded; undefined if it cannot be kept.
   * @param head as the upstream sent it
   */
  capture(head: ResponseHead): ResponseCapture | undefined {
    const { identity, notReady } = this.#options;
    if (identity.fingerprint === undefined || notReady?.has(head.status) === true) return undefined;
    if (Number(firstHeaderValue(head.headers, 'content-length')) > MAX_KEPT_BYTES) return undefined;
    this.#head = head;
    this.#capture = new ResponseCapture((body) => {
      this.#capture = undefined;
      this.#body = body;
      this.#keep();
    });
    return this.#capture;
  }

  release(end: KeyClaimEnd): void {
    const isKept = end.kind === 'answered' && end.isFinal && this.#head !== undefined;
    if (!isKept) {
      this.#capture?.abort();
      return this.#claim.release(end);
    }
    this.#delayed = { end, isUndelivered: false, isClosed: false };
    if (this.#capture === undefined) this.#keep();
  }

  onUndelivered(): void {
    if (this.#delayed === undefined) this.#claim.onUndelivered();
    else this.#delayed.isUndelivered = true;
  }

  close(): void {
    if (this.#delayed === undefined) this.#claim.close();
    else this.#delayed.isClosed = true;
  }

  stopWaiting(): void {
    this.#claim.stopWaiting();
  }

  onSend(endpoint: string): void {
    this.#claim.onSend(endpoint);
  }

  recordOutcome(meaning: WriteOutcome): void {
    this.#claim.recordOutcome(meaning);
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    this.#claim.lookUp(onRecord);
  }

  /** A response may be kept for a write whose record is gone, and for one that only another process knows. */
  #recall(record: KeyRecord | undefined, onRecalled: (match: KeptResponseMatch) => void): void {
    const { responses, identity, isNew } = this.#options;
    if (isNew) return onRecalled('none');
    responses.read(identity.id, (kept) => {
      const match = matchRepeat(kept, identity);
      if (match === 'kept') this.#kept = kept;
      // Nothing is known of the write that the other request named: the upstream decides.
      onRecalled(match === 'other_request' && record === undefined ? 'none' : match);
    });
  }

  /** Both the body and the end of the exchange are known. */
  #keep(): void {
    if (this.#delayed === undefined) return;
    const { responses, identity, lifetime, pacingHeaders } = this.#options;
    const { id, fingerprint, acceptEncoding } = identity;
    const [head, body] = [this.#head, this.#body];
    if (head === undefined || body === undefined || fingerprint === undefined) return this.#finish();
    const { status, reasonPhrase } = head;
    const headers = selectKeptHeaders(head.headers, pacingHeaders);
    const response = { status, reasonPhrase, headers, body, fingerprint, acceptEncoding };
    responses.keep(id, response, lifetime, () => this.#finish());
  }

  #finish(): void {
    const delayed = this.#delayed;
    if (delayed === undefined) return;
    this.#delayed = undefined;
    this.#claim.release(delayed.end);
    if (delayed.isUndelivered) this.#claim.onUndelivered();
    if (delayed.isClosed) this.#claim.close();
  }
}

function matchRepeat(
  kept: KeptResponse | undefined,
  { fingerprint, acceptEncoding }: RepeatIdentity,
): KeptResponseMatch {
  if (kept === undefined || fingerprint === undefined) return 'none';
  if (kept.fingerprint !== fingerprint) return 'other_request';
  const isEncoded = kept.headers.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-encoding');
  return isEncoded && kept.acceptEncoding !== acceptEncoding ? 'none' : 'kept';
}
