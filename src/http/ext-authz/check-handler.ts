import { check } from '../../core/exchange/external-authorization.ts';
import type { Effects } from '../../core/exchange/effects.ts';
import { Drive } from '../../core/exchange/exchange-driver.ts';
import type { Decision } from '../../core/events/proxy-events.ts';
import type { Millis, Verdict } from '../../core/exchange/attempt-outcome.ts';
import type { Description, LastAttempt, Step, Trace, Watched } from '../../core/exchange/exchange-observer.ts';
import type { Arrival } from '../request/routed-request.ts';
import { describeArrival, planOf } from '../request/routed-request.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import type { Endpoints } from '../upstream/endpoints.ts';
import { problemOf } from '../response/problem-details.ts';
import { Reply } from '../response/client-response.ts';
import type { Listed } from '../../core/collections/active-set.ts';
import { ticketOf } from '../request/request-ticket.ts';
import { traceIdOf, traceparentOf } from '../headers/trace-context.ts';
import { wrapAs } from './ingress-dialect.ts';
import type { CheckOptions } from './check-options.ts';
import { writePermit } from './check-permit.ts';

/** The proxy’s interpreter of one check: all it does is answer. */
export class CheckLife implements Effects, Watched, Listed {
  place = -1;
  steps: Step[] | undefined;
  trace: Trace | undefined;
  readonly drive: Drive<CheckLife>;
  readonly #context: ProxyContext;
  readonly #arrival: Arrival;
  readonly #options: CheckOptions;
  readonly #reply: Reply;
  readonly #since: Millis;
  readonly #onOver: (life: CheckLife) => void;
  #closed = false;
  #verdict: Verdict | undefined;

  /** @param onOver called once, when nothing of it is left */
  constructor(context: ProxyContext, arrival: Arrival, options: CheckOptions, onOver: (life: CheckLife) => void) {
    this.#context = context;
    this.#arrival = arrival;
    this.#options = options;
    this.#onOver = onOver;
    this.#reply = new Reply(context, arrival);
    this.#since = context.clock.now();
    const ticket = ticketOf(arrival, context.hash, (admission, now) => this.drive.settle(admission, now));
    ticket.isSentElsewhere = true;
    this.drive = new Drive<CheckLife>({
      script: check(this.#since + Math.min(options.wait, planOf(arrival).timeout)),
      gate: context.gate,
      ticket,
      effects: this,
      clock: context.clock,
      listen: context.listen,
      request: arrival.requestId,
      watcher: context.watcher,
    });
  }

  /** Its upstream is wanted until it has been answered. */
  goesTo(endpoints: Endpoints): boolean {
    return this.#arrival.route.target.endpoints === endpoints;
  }

  start(): void {
    const { response, route } = this.#arrival;
    this.#context.listen({ type: 'arrived', route: route.name });
    response.on('close', this.#onClose);
    this.drive.start();
    if (this.#context.isDraining()) this.expire();
  }

  /** We go away, and its ingress stays, and may not wait for as long as we would: who still waits is let pass at once. */
  drain(): void {
    this.expire();
  }

  expire(): void {
    this.drive.expire();
  }

  // — Watched —

  describe(): Description {
    return describeArrival(this.#arrival, this.#context.proto);
  }

  lastAttempt(): LastAttempt {
    return NEVER_SENT;
  }

  // — Effects: a check sends nothing, and never sleeps —

  readBody(): void {}
  claim(): void {}
  cancelClaim(): boolean {
    return false;
  }
  lookUp(): undefined {}
  send(): void {}
  cancelSend(): boolean {
    return false;
  }
  discard(): void {}
  sleep(): void {}
  cancelSleep(): void {}

  rearm(): void {
    this.#context.gateTimer.rearm();
  }

  finish(verdict: Verdict): void {
    this.#verdict = verdict;
    if (this.#closed || this.#arrival.response.destroyed) return this.#over();
    if (verdict.kind === 'forward') this.#reply.letPass(this.#headers());
    else if (verdict.kind === 'refuse') {
      // Whatever it is for, a 5xx would be taken for a check that failed.
      this.#reply.answer({ ...problemOf(verdict), status: 429 }, 0, wrapAs(this.#options.dialect));
    }
    this.#over();
  }

  readonly #onClose = (): void => {
    this.#closed = true;
    if (this.drive.isDone) this.#over();
    else this.drive.gone();
  };

  #headers(): string[] {
    const { route, client, requestId } = this.#arrival;
    const upstream = route.target.name;
    const { refs, requester, source } = this.drive.ticket;
    const { credential } = requester;
    const permit = writePermit({ upstream, client: client.hash, at: Date.now(), limits: refs, credential, source });
    // biome-ignore format: name and value in turn
    const headers = [
      'Via', this.#context.via,
      'X-Request-Id', this.#arrival.xRequestId,
      'Tidegate-Request-Id', requestId,
      'Tidegate-Upstream', upstream,
      'Tidegate-Client', client.hash,
      'Tidegate-Permit', permit,
      'Cache-Control', 'no-store',
    ];
    const { wouldHave } = this.drive;
    if (wouldHave !== undefined) headers.push('Tidegate-Would-Have', tell(wouldHave));
    return headers;
  }

  /** Once, when both the script and whoever asked are through. */
  #over(): void {
    if (this.#verdict === undefined || !this.#closed) return;
    this.#onOver(this);
    const { queued, wouldHave } = this.drive;
    const traceId = this.trace?.traceId ?? traceIdOf(traceparentOf(this.#arrival.request));
    const nothing = { attempts: 0, slept: 0, carried: undefined, failure: undefined };
    const record = this.#reply.record(this.#verdict, { ...nothing, since: this.#since, queued, wouldHave, traceId });
    this.#context.listen({ type: 'done', record });
    this.#context.watcher?.over(this, record);
  }
}

const NEVER_SENT: LastAttempt = { endpoint: undefined, origin: undefined, outcome: undefined, cause: undefined };

function tell({ decision, why }: Decision): string {
  return why === undefined ? decision : `${decision} ${why}`;
}
