import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import { limitId } from '../../core/limits/limit-ref.ts';
import type { SharingHooks } from '../../store/memory-store-options.ts';
import { applyAccountNotice } from '../protocol/apply-account-notice.ts';
import type { StoreBinding } from '../protocol/store-binding.ts';
import { BinaryHeap } from '../../core/collections/binary-heap.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Meter } from '../../core/limits/meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import { countTokensNeeded } from '../protocol/token-demand.ts';
import { LeaseClient } from './lease-client.ts';
import type { ReplicaMeter } from './replica-meter.ts';
import type { LeaseResponse, LeaseRequest, TermsBroadcast } from './replica-protocol.ts';

/** The minimum interval between signs of recovery that count. */
const MIN_SIGN_INTERVAL: Millis = 1000;

/** After a sign of recovery, all limits are retried within this time; many limits within more, not to overload the backend. */
const RETRY_WITHIN: Millis = 50;
const RETRY_DELAY_PER_LIMIT: Millis = 1;

/** Signs that a backend is back: a connection, a late response, or another process's announcement of a response. */
export type RecoverySign = 'connected' | 'late' | 'announced';

export interface ReplicaLimitClientParts {
  /** This process's name, which no other process has or had. */
  readonly replicaId: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Calls the backend, which answers with `onResponse` or `onNoResponse` of the client. */
  readonly call: (client: LeaseClient, request: LeaseRequest) => void;
  /** See `LeaseClientParts`; absent if the backend has no claims. */
  readonly claim?: (client: LeaseClient) => void;
  /** Publishes a hold to the other processes. */
  readonly publishHold: (hold: ClientHold) => void;
  /** Publishes a notice of an account to them; absent if accounts are not shared. */
  readonly publishNotice?: (notice: AccountNotice) => void;
  /** Applies what others have published of accounts; absent if accounts are not shared. */
  readonly loadNotices?: () => void;
  /** Usage reported here has decreased the rate of a limit; no other process reports that decrease. */
  readonly onDecrease: (ref: LimitRef, decrease: LeaseResponse['decreases'][number]) => void;
  /** `nextWake` has become earlier. */
  readonly rearm: () => void;
  /** The backend has stopped answering, or answers again. */
  readonly onDegraded: (isDegraded: boolean) => void;
}

/** Shares the limits of one process with a backend. `nextWake` returns when `wake` is due. */
export class ReplicaLimitClient implements SharingHooks {
  readonly #parts: ReplicaLimitClientParts;
  readonly #leaseClients = new Map<string, LeaseClient>();
  /** Clients whose limit does not exist yet, by their meters. */
  readonly #unattached = new WeakMap<Meter, LeaseClient>();
  readonly #wakes = new BinaryHeap<LeaseClient>((a, b) => a.wakeAt < b.wakeAt);
  readonly #inFallback = new Set<LeaseClient>();
  #binding: StoreBinding | undefined;
  #lastSignAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(parts: ReplicaLimitClientParts) {
    this.#parts = parts;
  }

  /** Makes the meter of a limit, for the store. */
  makeMeter(ref: LimitRef, settings: RateSettings): ReplicaMeter {
    const { replicaId, clock, random, call, claim, onDecrease } = this.#parts;
    const client = new LeaseClient(ref, settings, {
      replicaId,
      clock,
      random,
      call,
      claim,
      onDecrease,
      schedule: (each) => this.#schedule(each),
      countTokensNeeded: (limit) => countTokensNeeded(limit, this.#binding?.store),
      onTokensSupplied: (limit, now) => this.#binding?.onTokensSupplied(limit, now),
      onFallback: (each, isInFallback) => this.#onFallback(each, isInFallback),
      isReconnectProbe: (each) => each === this.#reconnectProbe,
    });
    this.#unattached.set(client.meter, client);
    return client.meter;
  }

  onLimitCreated(limit: Limit): void {
    const client = this.#unattached.get(limit.learnedMeter);
    if (client === undefined) return;
    this.#leaseClients.set(limitId(limit.ref), client);
    client.attach(limit);
    // While other limits are in fallback, a call would only time out.
    if (this.#inFallback.size > 0) client.enterFallback(this.#parts.clock.now());
  }

  onLimitForgotten(limit: Limit): void {
    const name = limitId(limit.ref);
    const client = this.#leaseClients.get(name);
    if (client?.meter !== limit.learnedMeter) return; // another limit may have the name by now
    this.#leaseClients.delete(name);
    client.detach();
    this.#wakes.remove(client);
    if (!this.#inFallback.delete(client)) return;
    // A forgotten limit is no sign that the backend is back.
    if (this.#reconnectProbe === undefined) this.#parts.onDegraded(false);
    else this.#reconnectProbe.startReconnectProbe(this.#parts.clock.now());
  }

  onSettingsChanged(): void {
    for (const { meter } of this.#leaseClients.values()) meter.onSettingsChanged();
    this.#parts.loadNotices?.(); // of accounts that were not configured here before
  }

  onClientHeld(hold: ClientHold): void {
    this.#parts.publishHold(hold);
  }

  onAccountChanged(notice: AccountNotice): void {
    this.#parts.publishNotice?.(notice);
  }

  bind(binding: StoreBinding): void {
    this.#binding = binding;
  }

  /** Applies terms that another replica's report has changed. */
  onBroadcast(broadcast: TermsBroadcast, now: Millis): void {
    this.#leaseClients.get(broadcast.limitId)?.onBroadcast(broadcast, now);
  }

  /** Applies a hold, or a reduced allowance, that another process published. */
  applyHold(hold: ClientHold, now: Millis): void {
    this.#binding?.store.applyHold(hold, now);
  }

  /** Applies a notice of an account that another process published. */
  applyNotice(notice: AccountNotice, now: Millis): void {
    if (this.#binding !== undefined) applyAccountNotice(this.#binding, notice, now);
  }

  /** Retries the limits in fallback soon. */
  onRecoverySign(sign: RecoverySign, now: Millis): void {
    if (this.#inFallback.size === 0) return;
    // Responses that keep coming late are no reason to call more often than probes do, nor are other replicas' short recoveries.
    if (sign !== 'connected') {
      if (now - this.#lastSignAt < MIN_SIGN_INTERVAL) return;
      this.#lastSignAt = now;
    }
    const within = Math.max(RETRY_WITHIN, RETRY_DELAY_PER_LIMIT * this.#inFallback.size);
    for (const client of this.#inFallback) client.retryWithin(now, within);
  }

  nextWake(): Millis | undefined {
    return this.#wakes.peek()?.wakeAt;
  }

  wake(now: Millis): void {
    for (let next = this.#wakes.peek(); next !== undefined && next.wakeAt <= now; next = this.#wakes.peek()) {
      this.#wakes.remove(next);
      next.wake(now);
    }
  }

  /** The client that has been in fallback for longest. */
  get #reconnectProbe(): LeaseClient | undefined {
    return this.#inFallback.values().next().value;
  }

  #schedule(client: LeaseClient): void {
    this.#wakes.remove(client);
    this.#wakes.push(client);
    if (this.#wakes.peek() === client) this.#parts.rearm();
  }

  #onFallback(client: LeaseClient, isInFallback: boolean): void {
    const wasDegraded = this.#inFallback.size > 0;
    if (isInFallback) this.#inFallback.add(client);
    else {
      this.#inFallback.delete(client);
      // Unused limits, which make no call, must not keep this process degraded.
      for (const each of this.#inFallback) {
        if (each.wakeAt !== Number.POSITIVE_INFINITY) continue;
        this.#inFallback.delete(each);
        each.leaveFallback(this.#parts.clock.now());
      }
    }
    const isDegraded = this.#inFallback.size > 0;
    if (isDegraded !== wasDegraded) this.#parts.onDegraded(isDegraded);
  }
}
