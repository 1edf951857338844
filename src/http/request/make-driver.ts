import type { Millis } from '../../core/scalars.ts';
import { isSafe, type RequestFacts } from '../../core/exchange/request-facts.ts';
import type { ExchangeEffects } from '../../core/exchange/effects.ts';
import { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { ObservedExchange } from '../../core/exchange/exchange-observer.ts';
import { ClientWait } from '../../core/exchange/client-wait.ts';
import { runExchange } from '../../core/exchange/polling-exchange.ts';
import { watchKey } from '../../core/exchange/watch-key.ts';
import type { LatencyEstimates } from '../../core/retry/latency-estimates.ts';
import type { ClientPolling } from '../response/client-polling.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { makeTicket } from './request-ticket.ts';
import { policyFor, type RoutedRequest } from './routed-request.ts';

interface Handler<E extends ExchangeEffects> extends ExchangeEffects, ObservedExchange {
  readonly driver: ExchangeDriver<E>;
  /** See `pinnedAccountOf`. */
  pinnedAccount(): string | undefined;
}

/** The driver of a request's exchange, not started yet. @param pollWait undefined if the client's result is not polled for */
export function makeDriver<E extends Handler<E>>(
  handler: E,
  context: ExchangeContext,
  routed: RoutedRequest,
  facts: RequestFacts,
  startedAt: Millis,
  pollWait: ClientPolling | undefined,
): ExchangeDriver<E> {
  const { clock, random, hash, gate, listen, observer, answerTimes } = context;
  const ticket = makeTicket(routed, hash, (admission, now) => handler.driver.onAdmission(admission, now), {
    addressGroup: routed.client.addressGroup,
    arrivedAt: startedAt,
    pinnedAccount: routed.route.target.accounts && (() => handler.pinnedAccount()),
  });
  // Elsewhere a wait of unknown length shows nothing, and no limit learns from it.
  const clientTimeouts = routed.route.target.learnsFromLatency ? context.clientTimeouts : undefined;
  const expectedTime = expectedTimeOf(routed, facts, answerTimes);
  const clientTimeout = clientTimeouts?.timeoutOf(ticket, startedAt);
  const generator = runExchange(facts, policyFor(routed), random, startedAt, expectedTime, clientTimeout);
  return new ExchangeDriver<E>({
    generator: routed.keyWatch === undefined ? generator : watchKey(generator, routed.keyWatch),
    gate,
    ticket,
    clientWait:
      clientTimeouts &&
      new ClientWait(clientTimeouts, ticket, isSafe(facts) ? answerTimes.of(routed.route.name, false) : undefined),
    effects: handler,
    clock,
    listen,
    requestId: routed.requestId,
    observer,
    pollWait,
  });
}

/** How long the upstream takes to respond; undefined if that does not matter. */
function expectedTimeOf(
  { route }: RoutedRequest,
  facts: RequestFacts,
  answerTimes: LatencyEstimates,
): (() => Millis) | undefined {
  if (!isSafe(facts)) return answerTimes.of(route.name, true).usual;
  return route.target.learnsFromLatency ? answerTimes.of(route.name, false).slow : undefined;
}
