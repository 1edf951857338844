import { runAuthorizationCheck } from '../../core/exchange/external-authorization.ts';
import type { ExchangeEffects } from '../../core/exchange/effects.ts';
import { ExchangeDriver } from '../../core/exchange/exchange-driver.ts';
import type { GateDecision } from '../../core/admission/gate-decision.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type {
  ExchangeDescription,
  LastAttempt,
  TraceStep,
  TraceContext,
  ObservedExchange,
} from '../../core/exchange/exchange-observer.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { arrivalOf, describeExchange, policyFor } from '../request/routed-request.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import { problemForVerdict } from '../response/problem-details.ts';
import { ClientResponse } from '../response/client-response.ts';
import type { ActiveSetMember } from '../../core/collections/active-set.ts';
import { makeTicket } from '../request/request-ticket.ts';
import { clientTraceOf } from '../headers/trace-context.ts';
import { allowHeadersFor, keepsStatus, statusMappingFor } from './ingress-dialect.ts';
import type { CheckOptions } from './check-options.ts';
import { encodePermit } from './check-permit.ts';

/** Handles one check of an ingress: its exchange sends nothing, and only the verdict is written. */
export class CheckHandler implements ExchangeEffects, ObservedExchange, ActiveSetMember {
  place = -1;
  readonly addressGroup: string;
  steps: TraceStep[] | undefined;
  trace: TraceContext | undefined;
  readonly driver: ExchangeDriver<CheckHandler>;
  readonly #context: ProxyContext;
  readonly #routed: RoutedRequest;
  readonly #options: CheckOptions;
  readonly #response: ClientResponse;
  readonly #startedAt: Millis;
  readonly #onDone: (handler: CheckHandler) => void;
  #isClosed = false;
  #verdict: ExchangeVerdict | undefined;

  /** @param onDone called once, when the exchange and the response are over */
  constructor(
    context: ProxyContext,
    routed: RoutedRequest,
    options: CheckOptions,
    onDone: (handler: CheckHandler) => void,
  ) {
    this.#context = context;
    this.#routed = routed;
    this.addressGroup = addressGroupOf(routed.client);
    this.#options = options;
    this.#onDone = onDone;
    this.#response = new ClientResponse(context, routed);
    this.#startedAt = arrivalOf(routed.request, context.clock);
    const ticket = makeTicket(routed, context.hash, (admission, now) => this.driver.onAdmission(admission, now), {
      addressGroup: routed.client.addressGroup,
      arrivedAt: this.#startedAt,
      isSentExternally: true,
    });
    this.driver = new ExchangeDriver<CheckHandler>({
      generator: runAuthorizationCheck(this.#startedAt + Math.min(options.maxWait, policyFor(routed).timeout)),
      gate: context.gate,
      ticket,
      effects: this,
      clock: context.clock,
      listen: context.listen,
      requestId: routed.requestId,
      observer: context.observer,
    });
  }

  /** Whether the check is about these endpoints. */
  usesEndpoints(endpoints: Endpoints): boolean {
    return this.#routed.route.target.endpoints === endpoints;
  }

  start(): void {
    const { response, route } = this.#routed;
    this.#context.listen({ type: 'arrived', route: route.name });
    response.on('close', this.#onClose);
    this.driver.start();
    if (this.#context.isDraining()) this.expireDrain();
  }

  /** The process shuts down: decides at once, because the ingress may not wait as long as the drain takes. */
  drain(): void {
    this.expireDrain();
  }

  expireDrain(): void {
    this.driver.expireDrain();
  }

  // — ObservedExchange —

  describe(): ExchangeDescription {
    return describeExchange(this.#routed, this.#context.proto);
  }

  lastAttempt(): LastAttempt {
    return NO_ATTEMPT;
  }

  // — ExchangeEffects: a check sends nothing and never sleeps —

  readBody(): void {}
  claim(): void {}
  stopClaim(): void {}
  join(): void {}
  leave(): void {}
  lookUpKey(): void {}
  send(): void {}
  cancelSend(): boolean {
    return false;
  }
  discardResponse(): void {}
  sleep(): void {}
  cancelSleep(): void {}

  rearmGateTimer(): void {
    this.#context.gateTimer.rearm();
  }

  finish(verdict: ExchangeVerdict): void {
    this.#verdict = verdict;
    const { dialect, onDecided } = this.#options;
    onDecided?.(this.driver.ticket.limits);
    if (this.#isClosed || this.#routed.response.destroyed) return this.#finishIfDone();
    if (verdict.kind === 'forward') this.#response.answer('checked', 200, this.#allowHeaders());
    else if (verdict.kind === 'refuse') {
      const problem = problemForVerdict(verdict);
      // Most ingresses would take a 5xx for a failed check.
      const status = keepsStatus(dialect) ? problem.status : 429;
      this.#response.respondWith({ ...problem, status }, 0, statusMappingFor(dialect));
    }
    this.#finishIfDone();
  }

  readonly #onClose = (): void => {
    this.#isClosed = true;
    if (this.driver.isDone) this.#finishIfDone();
    else this.driver.onClientGone();
  };

  #allowHeaders(): string[] {
    const { route, client, requestId } = this.#routed;
    const upstream = route.target.name;
    const { limitRefs, requester, attributes } = this.driver.ticket;
    const { credential } = requester;
    const permit = encodePermit({
      upstream,
      client: client.hash,
      allowedAt: Date.now(),
      limits: limitRefs,
      credential,
      source: attributes,
    });
    // biome-ignore format: name and value in turn
    const headers = [
      'Via', this.#context.via,
      'X-Request-Id', this.#routed.xRequestId,
      'Tidegate-Request-Id', requestId,
      'Tidegate-Upstream', upstream,
      'Tidegate-Client', client.hash,
      'Tidegate-Permit', permit,
      'Cache-Control', 'no-store',
      ...allowHeadersFor(this.#options.dialect),
    ];
    const { wouldHave } = this.driver;
    if (wouldHave !== undefined) headers.push('Tidegate-Would-Have', formatDecision(wouldHave));
    return headers;
  }

  /** Ends the handler once both the exchange and the response are over. */
  #finishIfDone(): void {
    if (this.#verdict === undefined || !this.#isClosed) return;
    this.#onDone(this);
    const { queued, wouldHave } = this.driver;
    const { traceId, spanId } = this.trace ?? clientTraceOf(this.#routed.request);
    const spent = { attempts: 0, slept: 0, failure: undefined, endpoint: undefined, bytesIn: 0, bytesForwarded: 0 };
    const record = this.#response.toRecord(this.#verdict, {
      ...spent,
      since: this.#startedAt,
      queued,
      wouldHave,
      traceId,
      spanId,
    });
    this.#context.listen({ type: 'done', record });
    this.#context.observer?.onEnd(this, record);
  }
}

const NO_ATTEMPT: LastAttempt = { endpoint: undefined, origin: undefined, outcome: undefined, cause: undefined };

function formatDecision({ decision, why }: GateDecision): string {
  return why === undefined ? decision : `${decision} ${why}`;
}
