import { randomBytes } from 'node:crypto';
import type { ActiveSetMember } from '../../core/collections/active-set.ts';
import type { AddResult, DeliveryStore, NewDelivery } from '../../core/delivery/delivery-store.ts';
import type { Millis } from '../../core/scalars.ts';
import { clientTraceOf } from '../headers/trace-context.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import { findUnresolvedByOthers } from '../idempotency/unresolved-key-check.ts';
import { acceptedKeyOf } from './accepted-key.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { readRequestBody } from '../request/read-body.ts';
import type { RequestBody } from '../request/request-body.ts';
import { arrivalOf, type RoutedRequest } from '../request/routed-request.ts';
import { ClientResponse } from '../response/client-response.ts';
import { asUnknownOutcome, DRAINING_PROBLEM, overloadProblem } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import type { BodyListener } from '../server/server-request.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import { type Acceptance, type AcceptanceReply, isProblem } from './acceptance.ts';
import { KEY_REUSED_BY_WRITE, storeProblem } from './delivery-problems.ts';
import { makeDeliveryId } from './delivery-id.ts';
import { statusPathOf } from './delivery-status.ts';

/** The store of requests that are sent later. */
export interface ProxyDeliveries {
  readonly store: DeliveryStore;
  readonly wallClock: () => Millis;
  /** One was stored. */
  readonly onAccepted: () => void;
}

export interface DeliveryIntakeParts extends ProxyDeliveries {
  readonly acceptance: Acceptance;
  readonly onDone: (intake: DeliveryIntake) => void;
}

/** Accepts a request that is sent later: reads it, stores it, and responds to it. The dispatcher makes the attempts. */
export class DeliveryIntake implements ActiveSetMember, BodyListener {
  place = -1;
  readonly addressGroup: string;
  readonly #context: ExchangeContext;
  readonly #routed: RoutedRequest;
  readonly #parts: DeliveryIntakeParts;
  readonly #response: ClientResponse;
  readonly #startedAt: Millis;
  #body: RequestBody | undefined;
  #key: IdempotencyKey | undefined;
  #isDecided = false;
  #isAccepted = false;

  constructor(context: ExchangeContext, routed: RoutedRequest, parts: DeliveryIntakeParts) {
    this.#context = context;
    this.#routed = routed;
    this.#parts = parts;
    this.addressGroup = addressGroupOf(routed.client);
    this.#response = new ClientResponse(context, routed);
    this.#startedAt = arrivalOf(routed.request, context.clock);
    this.#key = routed.key;
  }

  /** Attempts use the endpoints of the configuration that is in effect then. */
  usesEndpoints(_endpoints: Endpoints): boolean {
    return false;
  }

  start(): void {
    const { request, response, route } = this.#routed;
    this.#context.listen({ type: 'arrived', route: route.name });
    request.bodyListener = this;
    response.on('close', this.#onClose);
    this.#body = readRequestBody(this.#routed, this.#context, NO_PLACES, {
      onRead: (_isKept, key) => {
        this.#key = key ?? this.#key;
        this.#onBodyRead(this.#key);
      },
      onRejected: (problem) => this.#reject(problem),
    });
    this.#body?.read();
  }

  /** An intake takes a short time, so it goes on: what it stores is sent by the next process. */
  drain(): void {}

  expireDrain(): void {
    this.#reject(DRAINING_PROBLEM);
  }

  onMalformed(problem: Problem): void {
    this.#reject(problem);
  }

  #onBodyRead(key: IdempotencyKey | undefined): void {
    const body = this.#routed.request.hasBody ? this.#body?.whole : EMPTY;
    if (body !== undefined) return this.#store(body, key);
    const isTooLong = this.#body?.retention === 'too_long';
    this.#reject(
      isTooLong ? this.#parts.acceptance.bodyTooLarge : overloadProblem('replay_memory', this.#context.random),
    );
  }

  #store(body: Buffer, key: IdempotencyKey | undefined): void {
    const { request, route, client, peer } = this.#routed;
    const { acceptance, store, wallClock } = this.#parts;
    const fields = acceptance.describe(body, key);
    if (isProblem(fields)) return this.#reject(fields);
    const { headers, deduplicateFor, ...named } = fields;
    const acceptedAt = wallClock();
    const delivery = {
      ...named,
      id: makeDeliveryId(acceptedAt, randomBytes),
      route: route.name,
      upstream: route.target.name,
      acceptedAt,
      owner: client.hash,
      sender: addressGroupOf(client),
      message: {
        method: request.verb,
        target: request.target,
        headers,
        body,
        peer,
        ...acceptedKeyOf(this.#routed, key),
      },
      duplicatesUntil: acceptedAt + deduplicateFor,
    };
    store.add(delivery, (result) => this.#onAdded(delivery, result));
  }

  #onAdded(delivery: NewDelivery, result: AddResult): void {
    const { route } = this.#routed;
    if (result.kind === 'full' || result.kind === 'unavailable') {
      return this.#reject(storeProblem(result, { isWrite: delivery.kind === 'write' }));
    }
    const isDuplicate = result.kind === 'duplicate';
    this.#context.listen({
      type: 'delivery',
      route: route.name,
      event: isDuplicate ? 'duplicate' : 'accepted',
    });
    if (!isDuplicate) this.#parts.onAccepted();
    if (this.#isDecided) return; // it is stored, and its sender has left
    const id = isDuplicate ? result.id : delivery.id;
    this.#parts.acceptance.reply({ id, delivery, isDuplicate }, (reply) => {
      if (isProblem(reply)) this.#reject(reply);
      else this.#respond(id, reply);
    });
  }

  #respond(id: string, { status, headers, body }: AcceptanceReply): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.#isAccepted = true;
    const own = ['Location', statusPathOf(id), 'Tidegate-Delivery-Id', id, 'Via', this.#context.via];
    this.#response.answer('accepted', status, [...own, ...headers], body);
  }

  /** A write may be in progress, or have an unknown outcome, by another request with its key: then that is what is said. */
  #reject(problem: Problem): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    const respond = (answer: Problem): void => this.#response.respondWith(answer, 0);
    // A reused key names another write, which may be in progress.
    const isCertain = problem === KEY_REUSED_BY_WRITE || this.#routed.route.delivery !== undefined;
    if (problem.unknown || isCertain) return respond(problem);
    findUnresolvedByOthers(this.#context, this.#routed, this.#key, this.#body, undefined, (isUnresolved) =>
      respond(isUnresolved ? asUnknownOutcome(problem, 'earlier_request') : problem),
    );
  }

  readonly #onClose = (): void => {
    this.#isDecided = true;
    const { request, response } = this.#routed;
    response.off('close', this.#onClose);
    request.bodyListener = undefined;
    this.#parts.onDone(this);
    const { traceId, spanId } = clientTraceOf(request);
    const record = this.#response.toRecord(this.#isAccepted ? ACCEPTED : NOT_ACCEPTED, {
      ...NO_ATTEMPT,
      since: this.#startedAt,
      bytesIn: this.#body?.receivedBytes ?? 0,
      traceId,
      spanId,
    });
    this.#body?.release();
    this.#context.listen({ type: 'done', record });
  };
}

const EMPTY = Buffer.alloc(0);
/** It takes no place of a limit. */
const NO_PLACES = { inFlightLimits: [], costs: undefined };
const ACCEPTED = { kind: 'forward', unknown: false, attempts: 0, retryOutcome: undefined } as const;
const NOT_ACCEPTED = { ...ACCEPTED, kind: 'gone' } as const;
const NO_ATTEMPT = {
  attempts: 0,
  queued: 0,
  slept: 0,
  wouldHave: undefined,
  failure: undefined,
  endpoint: undefined,
  bytesForwarded: 0,
} as const;
