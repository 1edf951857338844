import type { KeyRecord, Millis, Outcome, Verdict } from '../../core/exchange/attempt-outcome.ts';
import { isSafe } from '../../core/exchange/attempt-outcome.ts';
import { isNamedByKey } from '../../core/retry/choose-retry.ts';
import { classifyWrite } from '../../core/idempotency/write-outcome.ts';
import type { Arrival } from '../request/routed-request.ts';
import { factsOf, planOf } from '../request/routed-request.ts';
import type { RequestBody } from '../request/request-body.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { IdempotencyKey } from './idempotency-key.ts';
import { credentialOf, keyInBody, keyTtlOf, nameWrite } from './idempotency-key.ts';
import type { Claiming } from './key-claim.ts';
import { KeyClaim } from './key-claim.ts';
import { isKeyOpen } from './unresolved-key-check.ts';

type Context = Pick<ExchangeContext, 'keys' | 'clock' | 'answerTimes'>;

const NO_BODY = new Uint8Array(0);

function schedule(delay: Millis, run: () => void): () => void {
  const timer = setTimeout(run, Math.ceil(delay));
  return () => clearTimeout(timer);
}

/** What a request has to do with its idempotency key, from its arrival to its end. */
export class ArrivedWrite {
  readonly #context: Context;
  readonly #arrival: Arrival;
  #key: IdempotencyKey | undefined;
  /** Made when its key is claimed. */
  #claim: KeyClaim | undefined;

  constructor(context: Context, arrival: Arrival) {
    this.#context = context;
    this.#arrival = arrival;
    this.#key = arrival.key;
  }

  get key(): IdempotencyKey | undefined {
    return this.#key;
  }

  /** Where its write was sent in an exchange before; undefined where that is not known. */
  get endpoint(): string | undefined {
    return this.#claim?.endpoint;
  }

  /** What an attempt came to. @param isStreamed its body was sent as its client sent it, so that the time it took is the client's too */
  note(outcome: Outcome, isStreamed: boolean): void {
    if (isSafe(factsOf(this.#arrival))) return;
    this.#claim?.note(outcome);
    if (outcome.kind === 'error' || outcome.isReplayed === true || isStreamed) return;
    const { notProcessed } = planOf(this.#arrival).retry;
    if (classifyWrite(outcome, notProcessed) !== 'answered') return;
    this.#context.answerTimes.of(this.#arrival.route.name).add(outcome.took);
  }

  /**
   * Where both places count and both have a key, the one in the body names the write: at any attempt both are the same.
   * @param body kept whole
   * @returns whether it has the key
   */
  readKey(body: RequestBody): boolean {
    this.#key = keyInBody(this.#arrival, body) ?? this.#key;
    return this.#key?.from === 'body';
  }

  /** @param body as far as it has been read */
  claim(claiming: Claiming, deadline: Millis, body: RequestBody | undefined): void {
    this.#claim ??= this.#makeClaim(body);
    this.#claim.begin(claiming, deadline);
  }

  cancelClaim(): boolean {
    return this.#claim?.cancel() === true;
  }

  /** As of `KeyClaim`. */
  sending(endpoint: string): void {
    this.#claim?.sending(endpoint);
  }

  /** As of `KeyClaim`. */
  lookUp(): KeyRecord | undefined {
    return this.#claim?.lookUp();
  }

  /** Whether the write may have been done by others, also where nothing was claimed yet. */
  mayOthersBeDone(): boolean {
    if (this.#claim?.isOn === true) return this.#claim.lookUp()?.isAnswered === false;
    return !isSafe(factsOf(this.#arrival)) && isKeyOpen(this.#context.keys, this.#arrival, this.#key);
  }

  /** As `KeyClaim.end`. */
  end(verdict: Verdict, outcome: Outcome | undefined, isHeard: boolean, endpoint: string | undefined): void {
    this.#claim?.end(verdict, outcome, isHeard, endpoint);
  }

  /** As `KeyClaim.unheard`. */
  unheard(): void {
    this.#claim?.unheard();
  }

  #makeClaim(body: RequestBody | undefined): KeyClaim {
    const { request, route, client } = this.#arrival;
    const { name, idempotency, endpoints } = route.target;
    const { keys, clock } = this.#context;
    const policy = planOf(this.#arrival).retry;
    const isPinned = endpoints.all.length > 1 && policy.sharesKeys !== true;
    const bytes = body?.whole ?? (request.hasBody ? undefined : NO_BODY);
    return new KeyClaim({
      keys,
      clock,
      schedule,
      identity: keys.identify(
        name,
        nameWrite(this.#arrival, this.#key?.value ?? ''),
        credentialOf(this.#arrival),
        bytes,
      ),
      place: { holder: client.nest ?? client.hash, client: client.hash },
      concurrent: idempotency.concurrent,
      ttl: keyTtlOf(request, route),
      policy,
      mayAskOthers: isPinned && !isNamedByKey({ ...factsOf(this.#arrival), keyed: true }),
    });
  }
}
