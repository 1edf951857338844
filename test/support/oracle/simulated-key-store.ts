import type { Millis, Random } from '../../../src/core/scalars.ts';
import type { KeyStateBackend, StoredName, WriteName } from '../../../src/sharing/keys/key-state-backend.ts';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import type { World } from '../core/world.ts';

interface Row {
  version: string;
  /** As text: what is read and what is stored share nothing. */
  state: string;
  /** When the lease of each owner ends. */
  readonly leases: Map<string, Millis>;
  isUnresolved: boolean;
  isAwaited: boolean;
}

export interface SimulatedReplica {
  readonly owner: string;
  readonly onNews: (name: WriteName) => void;
  readonly isAlive: () => boolean;
  /** A response was lost. */
  readonly onLost: () => void;
}

/** The share of calls without a response; half of them are carried out. */
const LOST = 0.002;
const TIMEOUT: Millis = 20;
const LEASE: Millis = 200;

/** A store that replicas share, in virtual time: each message takes a random time, and some are lost. */
export class SimulatedKeyStore {
  readonly #world: World;
  readonly #random: Random;
  readonly #maxDelay: Millis;
  readonly #rows = new Map<string, Row>();
  readonly #replicas = new Set<SimulatedReplica>();

  constructor(world: World, random: Random, maxDelay: Millis) {
    this.#world = world;
    this.#random = random;
    this.#maxDelay = maxDelay;
  }

  /** The store as one replica reaches it. */
  connect(replica: SimulatedReplica): KeyStateBackend {
    this.#replicas.add(replica);
    return {
      leaseTime: LEASE,
      read: (name, awaits, onRead) =>
        this.#call(
          replica,
          () => this.#read(name, awaits),
          () => undefined,
          onRead,
        ),
      swap: (name, change, onSwapped) =>
        this.#call(
          replica,
          () => {
            const row = this.#rows.get(keyOf(name));
            if ((row?.version ?? NO_VERSION) !== change.expected) {
              return { kind: 'changed', found: this.#read(name, false) } as const;
            }
            const { state, isUnresolved, next, owners } = change;
            const ends = (owner: string): Millis =>
              owner === replica.owner ? this.#world.now + LEASE : (row?.leases.get(owner) ?? 0);
            const leases = new Map([...owners].map((owner) => [owner, ends(owner)]));
            if (state === undefined) this.#rows.delete(keyOf(name));
            else {
              const text = JSON.stringify(state);
              const isAwaited = false;
              this.#rows.set(keyOf(name), { version: next, state: text, leases, isUnresolved, isAwaited });
            }
            if (change.isNews || row?.isAwaited === true) this.#announce(name);
            return { kind: 'stored' } as const;
          },
          (isUnsent) => ({ kind: 'lost', isUnsent }) as const,
          onSwapped,
        ),
      hasUnresolved: (upstream, onFound) =>
        this.#call(
          replica,
          () => [...this.#rows].some(([key, row]) => key.startsWith(`${upstream}\n`) && row.isUnresolved),
          () => undefined,
          onFound,
        ),
      renew: (upstream, names, onRenewed) =>
        this.#call(
          replica,
          () => {
            for (const name of names) {
              const leases = this.#rows.get(keyOf({ upstream, name }))?.leases;
              if (leases?.has(replica.owner) === true) leases.set(replica.owner, this.#world.now + LEASE);
            }
            return true;
          },
          () => false,
          onRenewed,
        ),
    };
  }

  disconnect(replica: SimulatedReplica): void {
    this.#replicas.delete(replica);
  }

  #call<T, L>(
    replica: SimulatedReplica,
    carryOut: () => T,
    lose: (isUnsent: boolean) => L,
    onResult: (result: T | L) => void,
  ): void {
    const world = this.#world;
    const fault = this.#random();
    const deliver = (after: Millis, result: () => T | L): void =>
      void world.at(world.now + after, () => replica.isAlive() && onResult(result()));
    if (fault < LOST) {
      const isUnsent = fault < LOST / 4;
      if (fault > LOST / 2) world.at(world.now + this.#delay(), carryOut);
      return deliver(TIMEOUT, () => {
        replica.onLost();
        return lose(isUnsent);
      });
    }
    world.at(world.now + this.#delay(), () => {
      const result = carryOut();
      deliver(this.#delay(), () => result);
    });
  }

  #read(name: WriteName, awaits: boolean): StoredName {
    const row = this.#rows.get(keyOf(name));
    if (row === undefined) return { version: NO_VERSION, state: undefined, gone: new Set(), forgets: 0 };
    if (awaits) row.isAwaited = true;
    const gone = [...row.leases].filter(([, ends]) => ends <= this.#world.now).map(([owner]) => owner);
    const state = JSON.parse(row.state) as StoredName['state'];
    return { version: row.version, state, gone: new Set(gone), forgets: 0 };
  }

  #announce(name: WriteName): void {
    for (const replica of this.#replicas) {
      this.#world.at(this.#world.now + this.#delay(), () => replica.isAlive() && replica.onNews(name));
    }
  }

  #delay(): Millis {
    return this.#maxDelay * this.#random();
  }
}

function keyOf({ upstream, name }: WriteName): string {
  return `${upstream}\n${name}`;
}
