import type { DeliveryAttempt, DeliveryEnd } from '../../../core/delivery/delivery.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { DeliveryAddition } from './delivery-addition.ts';
import type { DeliveryCommands } from './delivery-commands.ts';
import { encodeAttempt } from './delivery-fields.ts';
import { DELIVERY_LEASE } from './delivery-script-parts.ts';

/** A delivery that this replica sends. */
export interface RedisClaim {
  readonly id: string;
  readonly route: string;
  /** The name of the claim: a change applies only while Redis knows it. */
  readonly claim: string;
}

export interface ClaimedChange {
  readonly attempt: DeliveryAttempt | undefined;
  /** Something was sent in the attempt, or could have been. */
  readonly isCounted: boolean;
  /** When it is due, or has ended. */
  readonly at: Millis;
  /** Undefined: it is postponed. */
  readonly end?: ClaimedEnd;
}

export interface ClaimedEnd {
  readonly state: DeliveryEnd;
  readonly keptUntil: Millis;
  readonly sealedResult: Buffer | undefined;
  /** Stored in the same step, if there is room. */
  readonly callback: DeliveryAddition | undefined;
}

export interface ClaimedDeliveriesParts {
  readonly commands: DeliveryCommands;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  /** A delivery of the route may be due. */
  readonly onDue: (route: string) => void;
  /** An end is stored. @param reply about its callback: see `readAddition` */
  readonly onCallback: (callback: DeliveryAddition, reply: unknown) => void;
}

const RENEW_INTERVAL: Millis = DELIVERY_LEASE / 3;
/** Claims that a call renews. */
const RENEWED_AT_ONCE = 200;
/** Before a change is sent again that Redis did not take. */
const RETRY_INTERVAL: Millis = 500;

/**
 * The deliveries that this replica has claimed, and the changes that end claims. A change that cannot be stored is kept and sent again.
 * There are as many as attempts can be in progress: while one waits, nothing is claimed.
 */
export class ClaimedDeliveries {
  readonly #parts: ClaimedDeliveriesParts;
  readonly #claims = new Map<string, RedisClaim>();
  /** Those of claims that Redis has not confirmed. */
  readonly #changes = new Map<RedisClaim, ClaimedChange>();
  /** Those that Redis did not take. */
  readonly #failed = new Set<RedisClaim>();
  #cancelRenewal: (() => void) | undefined;
  #cancelRetry: (() => void) | undefined;
  #onIdle: (() => void) | undefined;

  constructor(parts: ClaimedDeliveriesParts) {
    this.#parts = parts;
  }

  /** Results of attempts wait for Redis. */
  get hasFailed(): boolean {
    return this.#failed.size > 0;
  }

  add(claim: RedisClaim): void {
    this.#claims.set(claim.id, claim);
    this.#cancelRenewal ??= this.#parts.schedule(RENEW_INTERVAL, () => this.#renew());
  }

  get(id: string): RedisClaim | undefined {
    return this.#claims.get(id);
  }

  /** The first change of a claim holds. */
  change(claim: RedisClaim, change: ClaimedChange): void {
    if (this.#changes.has(claim)) return;
    this.#changes.set(claim, change);
    this.#send(claim, change);
  }

  /** Releases a claim that this replica does not use. If that fails, its lease ends. */
  release({ id, claim, route }: RedisClaim, until: Millis): void {
    const change = { at: until, attempt: undefined, isCounted: false };
    this.#run({ id, claim, route }, change, (isDone) => isDone && this.#parts.onDue(route));
  }

  /** Ends all claims: resolves once all changes are stored, or fail. What is still claimed is due again. @param now wall clock */
  async close(now: Millis): Promise<void> {
    for (const claim of this.#claims.values()) this.change(claim, { at: now, attempt: undefined, isCounted: false });
    if (this.#changes.size > this.#failed.size) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    this.#cancelRenewal?.();
    this.#cancelRetry?.();
  }

  #send(claim: RedisClaim, change: ClaimedChange): void {
    this.#run(claim, change, (isDone) => {
      if (isDone) this.#onStored(claim);
      else this.#onFailed(claim);
      if (this.#changes.size === this.#failed.size) this.#onIdle?.();
    });
  }

  #onStored(claim: RedisClaim): void {
    const { onDue } = this.#parts;
    const wasFailed = this.#failed.delete(claim);
    this.#changes.delete(claim);
    if (this.#claims.get(claim.id) === claim) this.#claims.delete(claim.id);
    // Redis takes changes again.
    if (wasFailed) for (const each of this.#failed) this.#sendAgain(each);
    onDue(claim.route);
  }

  #onFailed(claim: RedisClaim): void {
    this.#failed.add(claim);
    if (this.#onIdle !== undefined) return;
    this.#cancelRetry ??= this.#parts.schedule(RETRY_INTERVAL, () => {
      this.#cancelRetry = undefined;
      const [first] = this.#failed;
      if (first !== undefined) this.#sendAgain(first);
    });
  }

  #sendAgain(claim: RedisClaim): void {
    const change = this.#changes.get(claim);
    if (change !== undefined) this.#send(claim, change);
  }

  /** @param onDone whether the change is stored, or another replica has the delivery */
  #run({ id, claim }: RedisClaim, change: ClaimedChange, onDone: (isDone: boolean) => void): void {
    const { commands, onCallback } = this.#parts;
    const { at, attempt, isCounted, end } = change;
    const callback = end?.callback;
    const ends = end === undefined ? ['', String(at), ''] : [end.state, String(at), String(end.keptUntil)];
    const attempts = [encodeAttempt(attempt), String(attempt?.at ?? ''), isCounted ? '1' : ''];
    const args = [id, claim, ...ends, ...attempts, end?.sealedResult ?? '', ...(callback?.args ?? [])];
    const keys = [id, ...(callback === undefined ? [] : [callback.id])].map((each) => commands.keyOf(each));
    commands.run({ script: 'tidegateChangeDelivery', keys, args }, (result) => {
      const reply = result.kind === 'response' ? result.response : undefined;
      if (callback !== undefined && Array.isArray(reply) && reply[0] === 'stored') onCallback(callback, reply[1]);
      onDone(result.kind === 'response');
    });
  }

  #renew(): void {
    this.#cancelRenewal = undefined;
    const claims = [...this.#claims.values()];
    if (claims.length === 0) return;
    for (let i = 0; i < claims.length; i += RENEWED_AT_ONCE) {
      const args = claims.slice(i, i + RENEWED_AT_ONCE).flatMap(({ id, claim }) => [id, claim]);
      this.#parts.commands.run({ script: 'tidegateRenewDeliveries', args }, () => undefined);
    }
    this.#cancelRenewal = this.#parts.schedule(RENEW_INTERVAL, () => this.#renew());
  }
}
