import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { Millis } from '../../core/scalars.ts';
import { MAX_KEPT_BYTES } from '../idempotency/kept-response.ts';
import { ResponseCapture } from '../idempotency/response-capture.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import type { ResponseHead } from '../response/response-head.ts';
import type { InFlightReads } from './in-flight-reads.ts';
import { isOfOneUser, readKeyOf } from './read-key.ts';
import type { SharedResponse } from './share-response.ts';

/** Equal reads of which one is sent, the leader, and the others wait for its response. */
export interface ReadFlight {
  leader: JoinedRead;
  readonly followers: Set<JoinedRead>;
}

type ReadContext = Pick<ExchangeContext, 'reads' | 'replayMemory' | 'clock'>;

interface JoinListener {
  /** @param equalId of the request whose response this one gets; undefined if it is sent itself */
  onJoined(equalId: string | undefined, hasWaited: boolean): void;
}

/** The part of one request in a flight of equal reads. */
export class JoinedRead {
  /** Empty for a request that is never sent together with others. */
  readonly key: string;
  /** Set by `InFlightReads`. */
  flight: ReadFlight | undefined;
  /** That of an equal read, once there is one. */
  response: SharedResponse | undefined;
  readonly #context: ReadContext;
  /** Its response may be `private`: all equal reads are of one user. */
  readonly isOfOneUser: boolean;
  readonly #owner: string;
  readonly #requestId: string;
  readonly #listener: JoinListener;
  #state: 'new' | 'waiting' | 'leading' | 'captured' | 'done' = 'new';
  #timer: NodeJS.Timeout | undefined;

  constructor(context: ReadContext, routed: RoutedRequest, listener: JoinListener) {
    this.#context = context;
    this.key = readKeyOf(routed) ?? '';
    this.isOfOneUser = isOfOneUser(routed);
    this.#requestId = routed.requestId;
    this.#owner = addressGroupOf(routed.client);
    this.#listener = listener;
  }

  get #reads(): InFlightReads {
    return this.#context.reads;
  }

  /** Calls back at the deadline at the latest. */
  begin(deadline: Millis): void {
    if (this.key === '' || !this.#reads.join(this)) return this.#settle('done', undefined, false);
    if (this.#state !== 'new') return;
    this.#state = 'waiting';
    this.#timer = setTimeout(
      () => {
        this.#reads.onTooSlow(this);
        this.#settle('done', undefined, true);
      },
      Math.max(0, Math.ceil(deadline - this.#context.clock.now())),
    ).unref();
  }

  /** It is sent for all that have joined its flight. */
  onLead(): void {
    const hasWaited = this.#state === 'waiting';
    if (this.#state === 'new' || hasWaited) this.#settle('leading', undefined, hasWaited);
  }

  /** @param response undefined if it has to be sent itself */
  onAnswered(response: SharedResponse | undefined): void {
    if (this.#state === 'waiting') this.#settle('done', response, true);
  }

  #settle(state: 'leading' | 'done', response: SharedResponse | undefined, hasWaited: boolean): void {
    clearTimeout(this.#timer);
    this.#state = state;
    this.response = response;
    this.#listener.onJoined(response?.requestId, hasWaited);
  }

  onSent(): void {
    if (this.#state === 'leading') this.#reads.onSent(this);
  }

  /** Collects the body of the response while it is forwarded; undefined if nobody waits for it, or it may not be shared. */
  capture(head: ResponseHead, outcome: AttemptOutcome | undefined): ResponseCapture | undefined {
    if (this.#state !== 'leading') return undefined;
    const { replayMemory } = this.#context;
    if (!this.#reads.isWanted(this, head, outcome)) this.#state = 'done';
    else if (!replayMemory.reserve(MAX_KEPT_BYTES, this.#owner)) this.end(false);
    else {
      this.#state = 'captured';
      return new ResponseCapture((body) => {
        this.#state = 'done';
        replayMemory.release(MAX_KEPT_BYTES, this.#owner);
        if (body === undefined) this.#reads.onIncomplete(this);
        else this.#reads.answer(this, { requestId: this.#requestId, head, body });
      });
    }
    return undefined;
  }

  /** Waits no longer: its client has gone, or the process shuts down. */
  leave(): void {
    clearTimeout(this.#timer);
    if (this.#state === 'waiting' || this.#state === 'leading') this.#reads.leave(this);
    this.#state = 'done';
  }

  /** Its request is over. */
  close(): void {
    this.end(false);
  }

  /** Its exchange is over. @param isNextToLead another one leads the others, because the client has gone or the upstream has failed */
  end(isNextToLead: boolean): void {
    if (this.#state === 'captured') return;
    if (isNextToLead || this.#state !== 'leading') return this.leave();
    this.#state = 'done';
    this.#reads.answer(this, undefined);
  }
}
