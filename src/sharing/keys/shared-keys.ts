import type { KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import { NameSession } from '../../core/idempotency/name-session.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyOperation, KeyReply } from './key-protocol.ts';
import type { KeyStateBackend, WriteName } from './key-state-backend.ts';
import { KeyWaits } from './key-waits.ts';
import { OwnerLeases } from './owner-leases.ts';
import { SharedName } from './shared-name.ts';

export interface SharedKeysParts {
  readonly backend: KeyStateBackend;
  readonly clock: Clock;
  /** The name of this process, never used by another one. */
  readonly owner: string;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly reply: (reply: KeyReply) => void;
  /** An operator has forgotten a write of this name. May be called again for the same one. */
  readonly onForgotten?: (name: string) => void;
}

/** Keeps the keys of the requests of this process in a store that it shares with other processes. */
export class SharedKeys {
  readonly #parts: SharedKeysParts;
  readonly #leases: OwnerLeases;
  readonly #waits = new KeyWaits();
  readonly #names = new Map<string, SharedName>();
  readonly #claims = new Map<number, { readonly name: SharedName; readonly request: KeyClaimRequest }>();
  #versions = 0;
  #onIdle: (() => void) | undefined;

  constructor(parts: SharedKeysParts) {
    this.#parts = parts;
    this.#leases = new OwnerLeases(parts);
  }

  get bound(): ResourceBound {
    return this.#waits.bound;
  }

  /** Whether others take the requests of this process with this name for being in progress. */
  isLeaseValid({ upstream, name }: WriteName): boolean {
    return this.#names.get(mapKey(upstream, name))?.lease.isValid === true;
  }

  perform(operations: readonly KeyOperation[]): void {
    for (const operation of operations) this.#performOne(operation);
  }

  /** Another process has announced a change. */
  onNews(upstream: string, name: string): void {
    this.#names.get(mapKey(upstream, name))?.onNews();
  }

  /** Calls back once no request has a key, and the ends of all are stored. */
  whenIdle(run: () => void): void {
    if (this.#names.size === 0) run();
    else this.#onIdle = run;
  }

  close(): void {
    this.#leases.close();
  }

  #performOne(operation: KeyOperation): void {
    if (operation.do === 'find') return this.#find(operation);
    if (operation.do === 'claim') return this.#claim(operation.claim, operation.request, operation.deadline);
    // Nothing of these outlives the process, and Redis itself keeps responses.
    if (operation.do === 'sent-unkeyed' || operation.do === 'end-unkeyed' || operation.do === 'response') return;
    const claim = this.#claims.get(operation.claim);
    if (claim === undefined) return;
    const { name, request } = claim;
    switch (operation.do) {
      case 'stop':
        return name.stopWaiting(operation.claim);
      case 'look':
        return name.run({ kind: 'look', number: operation.claim, request, last: operation.last });
      case 'close':
        this.#claims.delete(operation.claim);
        return name.close(operation.claim);
      case 'send':
      case 'release':
      case 'undelivered':
        return name.run({ kind: 'change', operation, request });
    }
  }

  #claim(number: number, request: KeyClaimRequest, deadline: Millis): void {
    const { upstream, name } = request.identity;
    const key = mapKey(upstream, name);
    let shared = this.#names.get(key);
    if (shared === undefined) {
      shared = new SharedName(
        { upstream, name },
        {
          ...this.#parts,
          waits: this.#waits,
          nextVersion: () => `${this.#parts.owner}.${(this.#versions += 1)}`,
          onIdle: (idle) => {
            this.#names.delete(key);
            this.#leases.remove(idle);
            if (this.#names.size === 0) this.#onIdle?.();
          },
        },
      );
      this.#names.set(key, shared);
      this.#leases.add(shared);
    }
    this.#claims.set(number, { name: shared, request });
    shared.claim(number, request, deadline);
  }

  /** No response counts as unresolved. */
  #find({ query, upstream, names, by }: Extract<KeyOperation, { readonly do: 'find' }>): void {
    const { backend, reply } = this.#parts;
    const answer = (isUnresolved: boolean): void => reply({ type: 'found', query, isUnresolved });
    if (names === undefined) return backend.hasUnresolved(upstream, (found) => answer(found ?? true));
    let left = names.length;
    if (left === 0) return answer(false);
    let isUnresolved = false;
    for (const name of names) {
      this.#isUnresolved({ upstream, name, by }, (found) => {
        isUnresolved ||= found;
        left -= 1;
        if (left === 0) answer(isUnresolved);
      });
    }
  }

  #isUnresolved(
    { upstream, name, by }: WriteName & Pick<Extract<KeyOperation, { readonly do: 'find' }>, 'by'>,
    onFound: (isUnresolved: boolean) => void,
  ): void {
    const { backend, clock, owner } = this.#parts;
    backend.read({ upstream, name }, false, (found) => {
      if (found === undefined) return onFound(true);
      const session = new NameSession(name, found.state, clock);
      session.abandon((each) => each !== owner && found.gone.has(each));
      onFound(session.isUnresolved(by));
    });
  }
}

function mapKey(upstream: string, name: string): string {
  return `${upstream}\n${name}`;
}
