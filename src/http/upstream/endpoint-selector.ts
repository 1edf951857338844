import type { Millis, Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Attempt } from './upstream-attempt.ts';
import type { Payload } from '../request/request-body.ts';
import { Errand } from './http1-connection.ts';
import type { Endpoint, Endpoints } from './endpoints.ts';

/** A request as it is written. */
export interface Message {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Payload;
  /** The protocol to change to; null: none. */
  readonly upgrade: string | null;
}

/** Where the sends of one exchange go, one after another: not to an endpoint that has failed it while there is another. */
export class Trip {
  readonly #endpoints: Endpoints;
  readonly #isJudged: boolean;
  #endpoint: Endpoint;
  #errand: Errand | undefined;
  /** Those before it whose answers are still being drained, with their endpoints; made when there is one. */
  #draining: { readonly errand: Errand; readonly endpoint: Endpoint }[] | undefined;
  #sentAt: Millis = 0;
  /** What the last send comes to is not known yet. */
  #isOpen = false;
  /** Endpoints that have failed; made when one has. */
  #failedAt: Set<number> | undefined;
  /** The last connection was being closed: the next is a new one. */
  #wasStale = false;

  /** @param isJudged whether answers say anything of the endpoint they come from */
  constructor(endpoints: Endpoints, isJudged = true) {
    this.#isJudged = isJudged;
    this.#endpoints = endpoints;
    this.#endpoint = endpoints.at(0);
  }

  /**
   * Where the next one goes; undefined where the endpoint that it is pinned to is no more.
   * @param isRepeatable it may be sent again whatever this comes to, and its body can be
   * @param pinnedTo its label; undefined: any
   */
  choose(isRepeatable: boolean, now: Millis, pinnedTo: string | undefined): Endpoint | undefined {
    if (this.#errand?.isOver === false) {
      this.#draining ??= [];
      this.#draining.push({ errand: this.#errand, endpoint: this.#endpoint });
    }
    this.#sentAt = now;
    const endpoint =
      pinnedTo === undefined
        ? this.#endpoints.choose(this.#failedAt, isRepeatable, now)
        : this.#endpoints.all.find(({ label }) => label === pinnedTo);
    if (endpoint === undefined) return undefined;
    this.#endpoint = endpoint;
    return endpoint;
  }

  send({ method, path, headers, body, upgrade }: Message, attempt: Attempt): void {
    const { origin, serverName: servername } = this.#endpoint;
    this.#errand = new Errand({ origin, servername, method, path, headers, body, upgrade }, attempt);
    this.#isOpen = true;
    this.#endpoints.send(this.#endpoint, this.#errand, this.#wasStale, this.#sentAt);
  }

  /** Where the last one goes; the first of all before there was one. */
  get endpoint(): Endpoint {
    return this.#endpoint;
  }

  /** All connections were busy when it was to be sent. */
  get hadToWait(): boolean {
    return this.#errand?.hadToWait === true;
  }

  /** What the send came to, and in the light of what is known of the endpoints. */
  settle(outcome: Outcome): Outcome {
    // Nothing was sent anywhere: that says nothing of the endpoints that there are.
    if (!this.#isOpen && outcome.kind === 'error') return { ...outcome, othersWork: true };
    if (!this.#isJudged && outcome.kind === 'response') {
      this.abandon();
      return outcome;
    }
    this.#isOpen = false;
    const stale = outcome.kind === 'error' && this.#isStale();
    this.#wasStale = stale;
    const told = stale ? { ...outcome, stale } : outcome;
    const verdict = this.#endpoints.settle(this.#endpoint, told, this.#sentAt);
    if (verdict === 'works' || verdict === 'nothing') return told;
    this.#failedAt ??= new Set();
    this.#failedAt.add(this.#endpoint.index);
    return verdict === 'fails alone' ? { ...told, othersWork: true } : told;
  }

  /** Nobody wants to know any more what it comes to. */
  abandon(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#endpoints.abandon(this.#endpoint, this.#sentAt);
  }

  /** The attempt is over, and needs its connection no more. */
  over(attempt: Attempt): void {
    const { errand, endpoint } =
      this.#errand?.attempt === attempt
        ? { errand: this.#errand, endpoint: this.#endpoint }
        : (this.#draining?.find((each) => each.errand.attempt === attempt) ?? {});
    if (errand === undefined || endpoint === undefined) return;
    errand.isOver = true;
    this.#endpoints.over(endpoint, errand);
  }

  #isStale(): boolean {
    const { connection, attempt } = this.#errand ?? {};
    return connection !== undefined && connection.served > 0 && attempt?.isUnanswered === true;
  }
}
