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

/** The share of calls without a response; half of them are carried out, and half of these much later. */
const LOST = 0.002;
const TIMEOUT: Millis = 20;
/** A call that is carried out late, as a packet that was sent again over an old connection. */
const LATE: Millis = 400;
export const LEASE: Millis = 200;

/** A store that replicas share, in virtual time: each message takes a random time, and some are lost. */
export class SimulatedKeyStore {
  readonly #world: World;
  readonly #random: Random;
  readonly #maxDelay: Millis;
  #rows = new Map<string, Row>();
  /** When the store lost what it knew of a name, each time. */
  readonly #losses = new Map<string, Millis[]>();
  /** When a call about a name was last carried out that its replica had given up. */
  readonly #lateAt = new Map<string, Millis>();
  readonly #replicas = new Set<SimulatedReplica>();
  /** Until then, all responses are lost. */
  #awayUntil: Millis = 0;

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
      swap: (name, change, onSwapped) => {
        const sentAt = this.#world.now;
        this.#call(
          replica,
          () => {
            if (this.#world.now - sentAt >= TIMEOUT) this.#lateAt.set(keyOf(name), this.#world.now);
            const row = this.#rows.get(keyOf(name));
            if ((row?.version ?? NO_VERSION) !== change.expected) {
              return { kind: 'changed', found: this.#read(name, false) } as const;
            }
            const { state, unresolvedOwner, next, owners } = change;
            const isUnresolved = unresolvedOwner !== undefined;
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
        );
      },
      hasUnresolved: (upstream, onFound) =>
        this.#call(
          replica,
          () => [...this.#rows].some(([key, row]) => key.startsWith(`${upstream}\n`) && row.isUnresolved),
          () => undefined,
          onFound,
        ),
      renew: (upstream, names, onRenewed) => {
        const sentAt = this.#world.now;
        this.#call(
          replica,
          () => {
            const missing = new Set<string>();
            for (const name of names) {
              if (this.#world.now - sentAt >= TIMEOUT) this.#lateAt.set(keyOf({ upstream, name }), this.#world.now);
              const leases = this.#rows.get(keyOf({ upstream, name }))?.leases;
              if (leases?.has(replica.owner) === true) leases.set(replica.owner, this.#world.now + LEASE);
              else missing.add(name);
            }
            return { missing };
          },
          () => undefined,
          onRenewed,
        );
      },
    };
  }

  /** Loses all responses for this time. */
  goAway(time: Millis): void {
    this.#awayUntil = this.#world.now + time;
  }

  /** @returns a function that brings these data back, as a restart with an older file, or a failover */
  takeSnapshot(): () => void {
    const snapshot = new Map([...this.#rows].map(([key, row]) => [key, { ...row, leases: new Map(row.leases) }]));
    return () => {
      for (const key of new Set([...snapshot.keys(), ...this.#rows.keys()])) {
        if (snapshot.get(key)?.version === this.#rows.get(key)?.version) continue;
        this.#losses.set(key, [...(this.#losses.get(key) ?? []), this.#world.now]);
      }
      this.#rows = snapshot;
    };
  }

  /** When it lost what it knew of a name, each time. */
  lossesOf(name: WriteName): readonly Millis[] {
    return this.#losses.get(keyOf(name)) ?? [];
  }

  /** When a call about a name was last carried out that its replica had given up; undefined if none was. */
  lateAt(name: WriteName): Millis | undefined {
    return this.#lateAt.get(keyOf(name));
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
    const fault = (world.now < this.#awayUntil ? LOST : 1) * this.#random();
    const deliver = (after: Millis, result: () => T | L): void =>
      void world.at(world.now + after, () => replica.isAlive() && onResult(result()));
    if (fault < LOST) {
      const isUnsent = fault < LOST / 4;
      const isLate = fault > 0.75 * LOST;
      if (fault > LOST / 2) world.at(world.now + (isLate ? LATE * this.#random() : this.#delay()), carryOut);
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
