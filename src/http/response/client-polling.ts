import { hash } from 'node:crypto';
import type { PollOutcome } from '../../core/events/proxy-events.ts';
import { formatRetryAfter } from '../../core/hints/read-hints.ts';
import { listElements } from '../../core/http-semantics/list-field.ts';
import type { PollPolicy } from '../../core/polling/choose-poll.ts';
import type { Millis, Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { PollWait } from '../../core/exchange/poll-session.ts';
import type { Arrival } from '../request/routed-request.ts';
import { planOf } from '../request/routed-request.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { readWait } from '../headers/prefer-header.ts';
import { without } from '../headers/raw-headers.ts';
import type { Head } from './client-response.ts';

/** Undefined where nothing is polled: on most routes, and for what is not merely asked for. */
export function pollPolicyOf(arrival: Arrival): PollPolicy | undefined {
  if (arrival.route.plan.poll === undefined) return undefined;
  const { poll, mode } = planOf(arrival);
  const { verb } = arrival.request;
  return mode !== 'observe' && (verb === 'GET' || verb === 'HEAD') ? poll : undefined;
}

export function clientPollingOf(context: ExchangeContext, arrival: Arrival): ClientPolling | undefined {
  const policy = pollPolicyOf(arrival);
  return policy === undefined ? undefined : new ClientPolling(context, arrival, policy);
}

/** What HTTP says of polling, of one request: how long its client would wait, and what it is told. */
export class ClientPolling implements PollWait {
  /** How long its client is waited for at most; undefined where it has not asked for that. */
  readonly wait: Millis | undefined;
  readonly #context: ExchangeContext;
  readonly #arrival: Arrival;
  readonly #policy: PollPolicy;
  readonly #since: Millis;
  #isWaitedFor = false;
  /** There was no room for it. */
  #isTurnedAway = false;

  constructor(context: ExchangeContext, arrival: Arrival, policy: PollPolicy) {
    const { prefer } = arrival.request.headers;
    const asked = prefer === undefined ? undefined : readWait(String(prefer));
    this.wait = asked === undefined ? undefined : Math.min(asked, policy.maxWait);
    this.#context = context;
    this.#arrival = arrival;
    this.#policy = policy;
    this.#since = context.clock.now();
  }

  enter(): boolean {
    if (this.#isWaitedFor) return true;
    this.#isWaitedFor = this.#context.polls.enter(this.#arrival.route.name, this.#policy.maxWaiting);
    this.#isTurnedAway = !this.#isWaitedFor;
    if (this.#isWaitedFor) this.#tellWait(undefined);
    return this.#isWaitedFor;
  }

  polled(outcome: PollOutcome): void {
    this.#context.listen({ type: 'poll', route: this.#arrival.route.name, outcome });
  }

  leave(): void {
    if (!this.#isWaitedFor) return;
    this.#isWaitedFor = false;
    this.#context.polls.leave(this.#arrival.route.name);
    this.#tellWait(this.#context.clock.now() - this.#since);
  }

  /**
   * The head as its client gets it: what is not ready says when to ask again, later each time that it is asked for and
   * is the same; and the client is told that its wish to wait was heard. Everything else stays as it is.
   * @param polls undefined where it was asked for once
   */
  tell(head: Head, outcome: Outcome | undefined, polls: number | undefined): Head {
    const added = this.wait === undefined || this.#isTurnedAway ? [] : applied(head, this.wait);
    const retryAfter = this.#policy.notReady.has(head.status) ? this.#slow(head, polls ?? 1) : this.#forget();
    const own = outcome?.kind === 'response' ? outcome.hints.retryAfter : undefined;
    if (retryAfter === undefined || (own !== undefined && own >= 1000 * retryAfter)) {
      return { ...head, polls, added };
    }
    this.#context.listen({ type: 'poll-slowed', route: this.#arrival.route.name });
    added.push('Retry-After', String(retryAfter));
    return { ...head, polls, headers: without(head.headers, 'retry-after'), added, retryAfter };
  }

  /** In whole seconds. */
  #slow(head: Head, polls: number): number {
    const { polls: memory, clock, random } = this.#context;
    const { backOff } = this.#policy;
    const seen = { key: this.#key, answer: digest(answerOf(head)), polls, backOff };
    return Number(formatRetryAfter(memory.slow(seen, clock.now(), random), random));
  }

  #forget(): undefined {
    const { polls: memory } = this.#context;
    if (!memory.isEmpty) memory.forget(this.#key);
  }

  #tellWait(waited: Millis | undefined): void {
    this.#context.listen({ type: 'poll-wait', route: this.#arrival.route.name, waited });
  }

  /** Who asks for what: the query too, which is not kept. */
  get #key(): string {
    const { client, route, request } = this.#arrival;
    return digest(`${client.hash}\0${route.name}\0${request.headers.host ?? ''}\0${request.target}`);
  }
}

/** Preference-Applied (RFC 7240 §3), unless the upstream has said so itself. */
function applied({ headers }: Head, wait: Millis): string[] {
  const told = headers.some((name, i) => i % 2 === 0 && isWaitApplied(name, headers[i + 1] ?? ''));
  return told ? [] : ['Preference-Applied', `wait=${Math.floor(wait / 1000)}`];
}

function isWaitApplied(name: string, value: string): boolean {
  return (
    name.toLowerCase() === 'preference-applied' &&
    listElements(value).some((each) => /^wait[\t ]*(?:[=;]|$)/i.test(each))
  );
}

/** What tells one answer from another, without its body. */
function answerOf({ status, headers }: Head): string {
  const parts = [String(status)];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]?.toLowerCase();
    if (name === 'etag' || name === 'last-modified') parts.push(name, headers[i + 1] ?? '');
  }
  return parts.join('\0');
}

/** 96 bits. Of a string as short as this V8 keeps no other. */
function digest(text: string): string {
  return hash('sha256', text, 'buffer').toString('latin1', 0, 12);
}
