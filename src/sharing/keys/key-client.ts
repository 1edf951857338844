import type { KeyClaim, KeyClaimRequest, KeyStore } from '../../core/idempotency/key-store.ts';
import type { OwnerDigests } from '../../core/idempotency/keyed-write.ts';
import type { OpenWrite, OpenWriteLog } from '../../core/idempotency/open-writes.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyOperation, KeyReply } from './key-protocol.ts';
import type { WriteName } from './key-state-backend.ts';
import { RemoteKeyClaim, REPLY_WITHIN } from './remote-key-claim.ts';
import { ResponseClient } from './response-client.ts';
import type { ResponseOperation } from './response-protocol.ts';

export interface KeyClientParts {
  readonly clock: Clock;
  readonly send: (operations: readonly KeyOperation[]) => void;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly after: (delay: Millis, run: () => void) => () => void;
  /** Calls `run` at the end of this turn of the event loop. */
  readonly schedule: (run: () => void) => void;
  /** False if other processes may presume the claims of this one ended; absent if that cannot happen. */
  readonly isLeaseValid?: (name: WriteName) => boolean;
  /** The bounds of the keeper, if nobody else reports them. */
  readonly bounds?: () => readonly ResourceBound[];
}

/** Keys that another process keeps: of a worker, its primary. */
export class KeyClient implements KeyStore, OpenWriteLog {
  /** The responses that the keeper keeps. */
  readonly responses: ResponseClient;
  readonly #parts: KeyClientParts;
  readonly #claims = new Map<number, RemoteKeyClaim>();
  readonly #queries = new Map<number, (isUnresolved: boolean) => void>();
  #outbox: KeyOperation[] = [];
  #isFlushScheduled = false;
  #isKeeperGone = false;
  #number = 0;

  constructor(parts: KeyClientParts) {
    this.#parts = parts;
    const send = (operation: ResponseOperation): void => this.#operate({ do: 'response', operation });
    this.responses = new ResponseClient({ send, after: parts.after });
  }

  get bounds(): readonly ResourceBound[] {
    return this.#parts.bounds?.() ?? [];
  }

  makeClaim(request: KeyClaimRequest): KeyClaim {
    this.#number += 1;
    const claim = new RemoteKeyClaim({
      ...{ clock: this.#parts.clock, after: this.#parts.after },
      claim: this.#number,
      request,
      send: (operation) => this.#operate(operation),
      onOver: (number) => this.#claims.delete(number),
      isLeaseValid: () => this.#parts.isLeaseValid?.(request.identity) ?? true,
    });
    this.#claims.set(this.#number, claim);
    return claim;
  }

  findUnresolved(
    upstream: string,
    names: readonly string[] | undefined,
    onFound: (isUnresolved: boolean) => void,
    by?: OwnerDigests,
  ): void {
    if (this.#isKeeperGone) return onFound(true);
    this.#number += 1;
    const query = this.#number;
    const cancelTimer = this.#parts.after(REPLY_WITHIN, () => this.#answer(query, true));
    this.#queries.set(query, (isUnresolved) => {
      cancelTimer();
      onFound(isUnresolved);
    });
    this.#operate({ do: 'find', query, upstream, names, by });
  }

  mayHaveUnresolved(): boolean {
    return true;
  }

  // — OpenWriteLog —

  onSent(write: OpenWrite): void {
    this.#operate({ do: 'sent-unkeyed', write });
  }

  onEnd(requestId: string): void {
    this.#operate({ do: 'end-unkeyed', requestId });
  }

  // — Replies —

  onReply(reply: KeyReply): void {
    if (reply.type === 'found') return this.#answer(reply.query, reply.isUnresolved);
    if (reply.type === 'response') return this.responses.onReply(reply.reply);
    const claim = this.#claims.get(reply.claim);
    switch (reply.type) {
      case 'claimed':
        return claim?.onClaimed(reply, reply.hasWaited);
      case 'refused':
        return claim?.onRefused(reply.why, reply.mayHaveTakenEffect);
      case 'known':
        return claim?.onKnown(reply, true, reply.isLost);
      case 'changed':
        return claim?.onKnown(reply, false);
      case 'lapsed':
        return claim?.onLapsed();
    }
  }

  /** No more replies arrive. What others have done is not known any more, so it counts as unresolved. */
  onKeeperGone(): void {
    this.#isKeeperGone = true;
    for (const query of this.#queries.keys()) this.#answer(query, true);
    for (const claim of this.#claims.values()) claim.onKeeperGone();
  }

  #answer(query: number, isUnresolved: boolean): void {
    const onFound = this.#queries.get(query);
    this.#queries.delete(query);
    onFound?.(isUnresolved);
  }

  #operate(operation: KeyOperation): void {
    if (this.#isKeeperGone) {
      if (operation.do === 'claim' || operation.do === 'look') {
        this.#claims.get(operation.claim)?.onKeeperGone();
      }
      return;
    }
    this.#outbox.push(operation);
    // Other operations of this turn join it: from the grant on a write counts as sent, so none of them is urgent.
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    this.#parts.schedule(() => this.flush());
  }

  /** Sends the operations of this turn now. */
  flush(): void {
    this.#isFlushScheduled = false;
    if (this.#outbox.length === 0) return;
    const operations = this.#outbox;
    this.#outbox = [];
    this.#parts.send(operations);
  }
}
