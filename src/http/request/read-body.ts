import type { Ticket } from '../../core/admission/ticket.ts';
import { declareBodyCosts } from '../cost/declared-costs.ts';
import { keyInBody, mayHaveKeyInBody } from '../idempotency/idempotency-key.ts';
import type { IdempotencyKey } from '../idempotency/idempotency-types.ts';
import { overloadProblem, UPLOAD_TIMEOUT_PROBLEMS } from '../response/problem-details.ts';
import type { HeldPlaces } from '../response/client-stall.ts';
import type { Problem } from '../response/problem.ts';
import { addressGroupOf } from './client-identity.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { beginSignatureCheck } from '../webhooks/signature-check.ts';
import { type BodyRetention, RequestBody } from './request-body.ts';
import type { RoutedRequest } from './routed-request.ts';

export interface BodyReadListener {
  /**
   * @param replayable the whole body is kept
   * @param key the idempotency key in the body; undefined if there is none. It takes precedence over a key in a header
   */
  onRead(replayable: boolean, key: IdempotencyKey | undefined): void;
  /** The body cannot be read, or is not accepted. */
  onRejected(problem: Problem): void;
}

/**
 * The body of a request, not read yet. Sends `100 Continue` if the client waits for it. Undefined if there is nothing to read: the
 * request has no body, or is rejected without it; the listener has been called then.
 * @param ticket of the exchange
 */
export function readRequestBody(
  routed: RoutedRequest,
  context: Pick<ExchangeContext, 'replayMemory' | 'clock' | 'random' | 'stalledClients' | 'listen'>,
  ticket: HeldPlaces & Pick<Ticket, 'costs'>,
  listener: BodyReadListener,
): RequestBody | undefined {
  const { request, response, route, snapshot, client } = routed;
  const { replayMemory, clock, random, stalledClients: registry } = context;
  const check = beginSignatureCheck(routed, context);
  const problem = check?.headProblem() ?? (request.hasBody ? undefined : check?.bodyProblem(undefined));
  if (problem !== undefined) listener.onRejected(problem);
  else if (!request.hasBody) listener.onRead(true, undefined);
  if (problem !== undefined || !request.hasBody) return undefined;
  const isAdmitted = request.expectsContinue;
  if (isAdmitted) response.writeContinue();
  request.expectsContinue = false;
  const onRead = (retention: BodyRetention): void => {
    const unverified = check?.bodyProblem(body);
    if (unverified !== undefined) return listener.onRejected(unverified);
    if (retention === 'whole' && !isAdmitted) declareBodyCosts(routed, body, ticket.costs);
    // Without reading the body, a write would be sent with a key that it has not claimed.
    if (retention === 'no_memory' && mayHaveKeyInBody(request, route)) {
      listener.onRejected(overloadProblem('replay_memory', random));
    } else listener.onRead(retention === 'whole', retention === 'whole' ? keyInBody(routed, body) : undefined);
  };
  const owner = addressGroupOf(client);
  const body = new RequestBody(request, {
    limit: route.replayLimit,
    memory: replayMemory,
    owner,
    idleTimeout: snapshot.bodyIdleTimeout,
    minRate: snapshot.minBodyRate,
    clock,
    stall: { upstream: route.target.name, addressGroup: owner, ticket, registry, clock },
    onRead,
    onTimeout: (reason) => listener.onRejected(UPLOAD_TIMEOUT_PROBLEMS[reason]),
  });
  return body;
}
