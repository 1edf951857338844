import { hash } from 'node:crypto';
import type { QueueOccupant } from '../../core/admission/queue-occupancy.ts';
import type { PollOutcome } from '../../core/events/event-labels.ts';
import { formatRetryAfter } from '../../core/hints/format-retry-after.ts';
import { statedRetryAfter } from '../../core/hints/hints.ts';
import { parseListField } from '../../core/http-semantics/list-field.ts';
import type { PollPolicy } from '../../core/polling/choose-poll.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { PollWaitAccounting } from '../../core/exchange/poll-session.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { policyFor, replaySafetyOf } from '../request/routed-request.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import { parsePreferWait } from '../headers/prefer-header.ts';
import { withoutHeader } from '../headers/raw-headers.ts';
import type { ResponseHead } from './response-head.ts';

/**
 * How results are polled for; undefined if they are not: on most routes, in observe mode, for methods other than GET and HEAD, and
 * for requests that are never sent twice.
 */
export function pollPolicyFor(routed: RoutedRequest): PollPolicy | undefined {
  if (routed.route.policy.poll === undefined) return undefined;
  const { poll, mode } = policyFor(routed);
  const { verb } = routed.request;
  if (mode === 'observe' || (verb !== 'GET' && verb !== 'HEAD')) return undefined;
  return replaySafetyOf(routed) === 'never' ? undefined : poll;
}

export function clientPollingFor(
  context: ExchangeContext,
  routed: RoutedRequest,
  arrivedAt: Millis,
): ClientPolling | undefined {
  const policy = pollPolicyFor(routed);
  return policy === undefined ? undefined : new ClientPolling(context, routed, policy, arrivedAt);
}

/** The polling headers of one request: reads `Prefer: wait`, and adds Preference-Applied and Retry-After to the response. */
export class ClientPolling implements PollWaitAccounting {
  /** The longest time to poll on behalf of the client; undefined if it did not ask for that. */
  readonly maxWait: Millis | undefined;
  readonly #context: ExchangeContext;
  readonly #routed: RoutedRequest;
  readonly #policy: PollPolicy;
  readonly #arrivedAt: Millis;
  #isWaiting = false;
  /** Too many requests were waiting, in all or from its address. */
  #isRejected = false;

  constructor(context: ExchangeContext, routed: RoutedRequest, policy: PollPolicy, arrivedAt: Millis) {
    const { prefer } = routed.request.headers;
    const preferredWait = prefer === undefined ? undefined : parsePreferWait(String(prefer));
    this.maxWait = preferredWait === undefined ? undefined : Math.min(preferredWait, policy.maxWait);
    this.#context = context;
    this.#routed = routed;
    this.#policy = policy;
    this.#arrivedAt = arrivedAt;
  }

  tryEnter(): boolean {
    if (this.#isWaiting) return true;
    this.#isWaiting = this.#context.polls.tryAddWaiter(this.#routed.route.name, this.#waiter, this.#policy.maxWaiting);
    this.#isRejected = !this.#isWaiting;
    if (this.#isWaiting) this.#emitWait(undefined);
    return this.#isWaiting;
  }

  onPollOutcome(outcome: PollOutcome): void {
    this.#context.listen({ type: 'poll', route: this.#routed.route.name, outcome });
  }

  leave(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#context.polls.removeWaiter(this.#routed.route.name, this.#waiter);
    this.#emitWait(this.#context.clock.now() - this.#arrivedAt);
  }

  /**
   * Adds Preference-Applied if the client's wait was honoured, and to a result that is not ready the time of the next poll, longer
   * each time that the result is the same.
   * @param polls how many times the result was polled for; undefined: once
   */
  withPollingHeaders(head: ResponseHead, outcome: AttemptOutcome | undefined, polls: number | undefined): ResponseHead {
    const addedHeaders = this.maxWait === undefined || this.#isRejected ? [] : preferenceApplied(head, this.maxWait);
    const retryAfterSeconds = this.#policy.notReady.has(head.status)
      ? this.#retryAfterSecondsFor(head, polls ?? 1)
      : this.#resetInterval();
    const upstreamRetryAfter = outcome?.kind === 'response' ? statedRetryAfter(outcome.hints) : undefined;
    if (
      retryAfterSeconds === undefined ||
      (upstreamRetryAfter !== undefined && upstreamRetryAfter >= 1000 * retryAfterSeconds)
    ) {
      return { ...head, polls, addedHeaders };
    }
    this.#context.listen({ type: 'poll-slowed', route: this.#routed.route.name });
    addedHeaders.push('Retry-After', String(retryAfterSeconds));
    return { ...head, polls, headers: withoutHeader(head.headers, 'retry-after'), addedHeaders, retryAfterSeconds };
  }

  /** Whole seconds. */
  #retryAfterSecondsFor(head: ResponseHead, polls: number): number {
    const { polls: memory, clock, random } = this.#context;
    const { backOff } = this.#policy;
    const poll = { key: this.#key, answer: digestOf(versionOf(head)), polls, backOff };
    return Number(formatRetryAfter(memory.nextRetryAfter(poll, clock.now(), random), random));
  }

  #resetInterval(): undefined {
    const { polls: memory } = this.#context;
    if (!memory.isEmpty) memory.forget(this.#key);
  }

  #emitWait(waited: Millis | undefined): void {
    this.#context.listen({ type: 'poll-wait', route: this.#routed.route.name, waited });
  }

  get #waiter(): QueueOccupant {
    const { client } = this.#routed;
    return { fairnessKey: addressGroupOf(client), client: client.hash };
  }

  /** Identifies the client and what it polls for, query included; kept as a digest. */
  get #key(): string {
    const { client, route, request } = this.#routed;
    return digestOf(`${client.hash}\0${route.name}\0${request.headers.host ?? ''}\0${request.target}`);
  }
}

/** Preference-Applied (RFC 7240 §3), unless the upstream sent it itself. */
function preferenceApplied({ headers }: ResponseHead, wait: Millis): string[] {
  const isAlreadyApplied = headers.some((name, i) => i % 2 === 0 && isWaitApplied(name, headers[i + 1] ?? ''));
  return isAlreadyApplied ? [] : ['Preference-Applied', `wait=${Math.floor(wait / 1000)}`];
}

function isWaitApplied(name: string, value: string): boolean {
  return (
    name.toLowerCase() === 'preference-applied' &&
    parseListField(value).some((each) => /^wait[\t ]*(?:[=;]|$)/i.test(each))
  );
}

/** What distinguishes one result from another without reading its body. */
function versionOf({ status, headers }: ResponseHead): string {
  const parts = [String(status)];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]?.toLowerCase();
    if (name === 'etag' || name === 'last-modified') parts.push(name, headers[i + 1] ?? '');
  }
  return parts.join('\0');
}

/** 96 bits. V8 keeps so short a string by itself, not as a slice of another. */
function digestOf(text: string): string {
  return hash('sha256', text, 'buffer').toString('latin1', 0, 12);
}
