/** The processes of the oracle, in virtual time: one, one with a disk, or several workers whose primary keeps the keys. */
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import type { KeyStore } from '../../../src/core/idempotency/key-store.ts';
import { RegistryKeyStore } from '../../../src/core/idempotency/registry-key-store.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { KeyClient } from '../../../src/sharing/keys/key-client.ts';
import { KeyServer } from '../../../src/sharing/keys/key-server.ts';
import type { KeyReply } from '../../../src/sharing/keys/key-protocol.ts';
import { WorkerOpenWrites } from '../../../src/sharing/keys/worker-open-writes.ts';
import { MemoryResponseStore } from '../../../src/store/responses/memory-response-store.ts';
import type { WriteName } from '../../../src/sharing/keys/key-state-backend.ts';
import { SharedKeys } from '../../../src/sharing/keys/shared-keys.ts';
import type { World } from '../core/world.ts';
import { SimulatedKeyStore } from './simulated-key-store.ts';
import { SimulatedDisk } from './simulated-journal.ts';

/** A request of a process, which ends with it. */
export interface ProcessRequest {
  onProcessGone(): void;
}

export const TOPOLOGIES = ['one process', 'three workers', 'a database', 'three replicas'] as const;
export type SimulatedTopology = (typeof TOPOLOGIES)[number];

export interface SimulatedProcess {
  readonly store: KeyStore;
  readonly requests: Set<ProcessRequest>;
}

/** How long a message between two processes takes at most. */
export const MAX_DELAY: Millis = 3;

export class SimulatedProcesses {
  readonly #world: World;
  readonly #random: Random;
  readonly #registryStore: RegistryKeyStore;
  readonly #server: KeyServer;
  readonly #clients = new Map<number, (deliver: (client: KeyClient) => void) => void>();
  readonly #all: { process: SimulatedProcess; kill: () => void }[] = [];
  #workers = 0;
  /** When a response of the store was last lost: what is known then is not complete. */
  lastLossAt: Millis = Number.NEGATIVE_INFINITY;
  /** Of replicas. */
  readonly keyStore: SimulatedKeyStore | undefined;
  readonly #start: () => { process: SimulatedProcess; kill: () => void };

  constructor(world: World, random: Random, topology: SimulatedTopology) {
    this.#world = world;
    this.#random = random;
    this.#registryStore = this.#makeStore();
    const openWrites = new WorkerOpenWrites(undefined, () => undefined);
    const responses = new MemoryResponseStore({ now: () => world.now });
    const reply = (worker: number, each: KeyReply): void => {
      this.#clients.get(worker)?.((client) => client.onReply(each));
    };
    this.#server = new KeyServer(this.#registryStore, reply, openWrites, responses);
    switch (topology) {
      case 'one process':
        this.#start = () => ({ process: { store: this.#makeStore(), requests: new Set() }, kill: () => undefined });
        break;
      case 'three workers': {
        this.#start = () => this.#startWorker();
        this.#all.push(this.#start(), this.#start());
        break;
      }
      case 'a database': {
        const disk = new SimulatedDisk(world, random);
        this.#start = () => this.#startStored(disk);
        break;
      }
      case 'three replicas': {
        const keyStore = new SimulatedKeyStore(world, random, MAX_DELAY);
        this.keyStore = keyStore;
        this.#start = () => this.#startReplica(keyStore);
        this.#all.push(this.#start(), this.#start());
      }
    }
    this.#all.push(this.#start());
  }

  /** The process that takes the next request. */
  choose(): SimulatedProcess {
    return this.#pick().process;
  }

  /** A process ends at once, as by SIGKILL, and is replaced. What it has sent to its primary arrives. */
  killOne(): void {
    const victim = this.#pick();
    victim.kill();
    for (const request of victim.process.requests) request.onProcessGone();
    this.#all[this.#all.indexOf(victim)] = this.#start();
  }

  #pick(): { process: SimulatedProcess; kill: () => void } {
    const picked = this.#all[Math.floor(this.#all.length * this.#random())];
    if (picked === undefined) throw new Error('there is no process');
    return picked;
  }

  #makeStore(): RegistryKeyStore {
    const world = this.#world;
    return new RegistryKeyStore(new KeyRegistry(), { now: () => world.now }, this.#makeTimer());
  }

  #makeTimer(isAlive = () => true): (delay: Millis, run: () => void) => () => void {
    const world = this.#world;
    return (delay, run) => {
      let isWanted = true;
      world.at(world.now + delay, () => isWanted && isAlive() && run());
      return () => {
        isWanted = false;
      };
    };
  }

  #startStored(disk: SimulatedDisk): { process: SimulatedProcess; kill: () => void } {
    let isAlive = true;
    const store = this.#makeStore();
    store.keys.resume(
      disk.stored,
      disk.openJournal(() => isAlive),
    );
    const kill = (): void => {
      isAlive = false;
    };
    return { process: { store, requests: new Set() }, kill };
  }

  #startWorker(): { process: SimulatedProcess; kill: () => void } {
    this.#workers += 1;
    const worker = this.#workers;
    const toServer = this.#makeChannel();
    const toClient = this.#makeChannel();
    let isAlive = true;
    const client: KeyClient = new KeyClient({
      clock: { now: () => this.#world.now },
      send: (operations) => isAlive && toServer(() => this.#server.onOperations(worker, operations)),
      schedule: (run) => this.#world.at(this.#world.now, run),
      after: this.#makeTimer(() => isAlive),
    });
    this.#clients.set(worker, (deliver) => toClient(() => isAlive && deliver(client)));
    this.#server.join(worker);
    const kill = (): void => {
      isAlive = false;
      this.#clients.delete(worker);
      toServer(() => this.#server.leave(worker));
    };
    return { process: { store: client, requests: new Set() }, kill };
  }

  #startReplica(keyStore: SimulatedKeyStore): { process: SimulatedProcess; kill: () => void } {
    this.#workers += 1;
    const owner = `replica ${this.#workers}`;
    const world = this.#world;
    const clock = { now: () => world.now };
    let isAlive = true;
    const schedule = this.#makeTimer(() => isAlive);
    const replica = {
      owner,
      isAlive: () => isAlive,
      onNews: ({ upstream, name }: WriteName) => shared.onNews(upstream, name),
      onLost: () => {
        this.lastLossAt = world.now;
      },
    };
    const backend = keyStore.connect(replica);
    const shared = new SharedKeys({ backend, clock, owner, schedule, reply: (reply) => client.onReply(reply) });
    const client: KeyClient = new KeyClient({
      clock,
      send: (operations) => isAlive && shared.perform(operations),
      schedule: (run) => world.at(world.now, run),
      after: schedule,
      isLeaseValid: (name) => shared.isLeaseValid(name),
    });
    const kill = (): void => {
      isAlive = false;
      keyStore.disconnect(replica);
    };
    return { process: { store: client, requests: new Set() }, kill };
  }

  /** Delivers in order, each after a random delay. */
  #makeChannel(): (deliver: () => void) => void {
    let last: Millis = 0;
    return (deliver) => {
      last = Math.max(last, this.#world.now + MAX_DELAY * this.#random());
      this.#world.at(last, deliver);
    };
  }
}
