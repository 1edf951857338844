import type { ClaimRefusalReason, KeyRecord } from '../../core/idempotency/key-record.ts';
import type { ResponseStore } from '../../core/idempotency/response-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { RegistryKeyClaim } from '../../core/idempotency/registry-key-claim.ts';
import type { RegistryKeyStore } from '../../core/idempotency/registry-key-store.ts';
import type { KeyOperation, KeyReply } from './key-protocol.ts';
import { ResponseServer } from './response-server.ts';
import type { WorkerOpenWrites } from './worker-open-writes.ts';

/** Keeps the keys of writes for several workers. */
export class KeyServer {
  readonly #store: RegistryKeyStore;
  readonly #send: (worker: number, reply: KeyReply) => void;
  readonly #openWrites: WorkerOpenWrites;
  readonly #responses: ResponseServer;
  readonly #claims = new Map<number, Map<number, RegistryKeyClaim>>();

  /** @param openWrites of the workers. @param responses that are kept for repeats */
  constructor(
    store: RegistryKeyStore,
    send: (worker: number, reply: KeyReply) => void,
    openWrites: WorkerOpenWrites,
    responses: ResponseStore,
  ) {
    this.#responses = new ResponseServer(responses, (worker, reply) => send(worker, { type: 'response', reply }));
    this.#store = store;
    this.#send = send;
    this.#openWrites = openWrites;
  }

  get bounds(): readonly ResourceBound[] {
    return [...this.#store.bounds, ...this.#responses.bounds];
  }

  join(worker: number): void {
    this.#claims.set(worker, new Map());
  }

  /** A worker has ended: its requests may have done their writes. */
  leave(worker: number): void {
    const claims = this.#claims.get(worker);
    this.#claims.delete(worker);
    this.#openWrites.leave(worker);
    for (const claim of claims?.values() ?? []) {
      claim.abandon();
      this.#announceChange(claim);
    }
  }

  /** Operations of a worker that has ended are too late: `leave` has taken their place. */
  onOperations(worker: number, operations: readonly KeyOperation[]): void {
    const claims = this.#claims.get(worker);
    if (claims !== undefined) for (const operation of operations) this.#perform(worker, claims, operation);
  }

  #perform(worker: number, claims: Map<number, RegistryKeyClaim>, operation: KeyOperation): void {
    if (operation.do === 'find') {
      const { query, upstream, names, by } = operation;
      const onFound = (isUnresolved: boolean): void => this.#send(worker, { type: 'found', query, isUnresolved });
      return this.#store.findUnresolved(upstream, names, onFound, by);
    }
    if (operation.do === 'claim') return this.#claim(worker, claims, operation);
    if (operation.do === 'response') return this.#responses.onOperation(worker, operation.operation);
    if (operation.do === 'sent-unkeyed') return this.#openWrites.onSent(worker, operation.write);
    if (operation.do === 'end-unkeyed') return this.#openWrites.onEnd(worker, operation.requestId);
    const claim = claims.get(operation.claim);
    if (claim === undefined) return;
    switch (operation.do) {
      case 'stop':
        return claim.stopWaiting();
      case 'look':
        if (operation.last !== undefined) claim.recordOutcome(operation.last);
        return claim.lookUp((record) =>
          this.#send(worker, { type: 'known', claim: operation.claim, record, endpoint: claim.endpoint }),
        );
      case 'send':
      case 'release':
        return claim.apply(operation);
      case 'undelivered':
        claim.apply(operation);
        return this.#announceChange(claim);
      case 'close':
        claims.delete(operation.claim);
        if (claim.close()) this.#announceChange(claim);
    }
  }

  #claim(
    worker: number,
    claims: Map<number, RegistryKeyClaim>,
    { claim: number, request, deadline }: Extract<KeyOperation, { readonly do: 'claim' }>,
  ): void {
    const claim = this.#store.makeClaim(request, true);
    claims.set(number, claim);
    const listener = {
      onClaimed: (_record: KeyRecord | undefined, hasWaited: boolean) =>
        this.#send(worker, { type: 'claimed', claim: number, hasWaited, ...claim.known }),
      onClaimRefused: (why: ClaimRefusalReason, mayHaveTakenEffect: boolean) =>
        this.#send(worker, { type: 'refused', claim: number, why, mayHaveTakenEffect }),
    };
    claim.begin(listener, deadline);
  }

  /** Sends what is known of this claim's write to the requests that hold its key. */
  #announceChange(changed: RegistryKeyClaim): void {
    for (const [worker, claims] of this.#claims) {
      for (const [number, claim] of claims) {
        if (claim.isHolderOf(changed)) this.#send(worker, { type: 'changed', claim: number, ...claim.known });
      }
    }
  }
}
