/**
 * Clients of processes that share one limit, in virtual time: each asks again as soon as it is served, or when its Retry-After
 * says. Impatient ones do not wait that long.
 */
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { formatRetryAfter } from '../../../src/core/hints/format-retry-after.ts';
import type { AdmissionCallback, AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaLimitClient } from '../../../src/sharing/replicas/replica-limit-client.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { MemoryStoreOptions } from '../../../src/store/memory-store-options.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { response, SHARED, upstreamSettings } from './policy-builders.ts';

/** One way between a member and the keeper of the limit. */
const LATENCY: Millis = 1;
const RESPONSE_TIME: Millis = 20;
const CLIENT_DELAY: Millis = 5;
const STEP: Millis = 1;
const MAX_WAIT: Millis = 60_000;
/** After a refusal, whatever its Retry-After says. */
const IMPATIENT_PAUSE: Millis = 300;
/** Of each nested limit: it never holds a request back. */
const NESTED_RATE: PerSecond = 1000;

export interface PoliteRun {
  readonly sharing: 'workers' | 'replicas';
  readonly rate: PerSecond;
  /** The number of clients at each member. */
  readonly clients: readonly number[];
  /** When the clients of each member begin, over two seconds. */
  readonly startAt: readonly Millis[];
  /** Served requests and seconds of Retry-After are counted from here to the end. */
  readonly from: Millis;
  readonly until: Millis;
  readonly seed: number;
  readonly oneShot?: OneShotClients;
  readonly impatient?: readonly ImpatientRequest[];
  /** The number of further polite clients at each member, all of them with keys of one address. */
  readonly keysOfAddress?: readonly number[];
  /** The number of further polite clients, each of which asks any member each time. */
  readonly roaming?: number;
  /** The polite clients' requests have a nested limit, of one endpoint. */
  readonly isNested?: boolean;
}

/** A request that is made again and again from the start, one at a time. */
export interface ImpatientRequest {
  readonly member: number;
  readonly client: string;
  readonly address?: string;
  /** With a nested limit of this endpoint. */
  readonly endpoint?: string;
}

/** Clients of the first member that begin at this time, a millisecond apart, and never return. */
export interface OneShotClients {
  readonly count: number;
  readonly at: Millis;
  /** The number of requests of each, 100 ms apart; 1 if absent. */
  readonly asks?: number;
}

/** What the clients of one member got. */
export interface MemberResult {
  served: number;
  readonly retryAfters: number[];
  impatientServed: number;
  roamingServed: number;
  keysServed: number;
}

interface Member {
  readonly gate: Gate;
  readonly wake: (now: Millis) => void;
}

export function runPoliteClients(run: PoliteRun): readonly MemberResult[] {
  const world = new VirtualTime();
  const members = run.sharing === 'workers' ? openWorkers(run, world) : openReplicas(run, world);
  const random = seededRandom(run.seed);
  const results = run.clients.map(
    (): MemberResult => ({ served: 0, retryAfters: [], impatientServed: 0, roamingServed: 0, keysServed: 0 }),
  );
  for (const [number, { gate }] of members.entries()) {
    const result = results[number];
    if (result === undefined) continue;
    const onRefused = (retryAfterMs: Millis): Millis => {
      const seconds = Number(formatRetryAfter(retryAfterMs, random));
      if (world.now >= run.from) result.retryAfters.push(seconds);
      return 1000 * seconds + CLIENT_DELAY;
    };
    const onServed = (): void => {
      if (world.now >= run.from) result.served += 1;
    };
    const refs = run.isNested === true ? [SHARED, endpointRef('charges')] : [SHARED];
    for (let i = 0; i < (run.clients[number] ?? 0); i += 1) {
      const start = (run.startAt[number] ?? 0) + 2000 * random();
      const ticketFor = (onSettled: AdmissionCallback): Ticket =>
        new Ticket('up', `client ${i} of ${number}`, 1, refs, onSettled);
      startClient({ ticketFor, onRefused, onServed, gateFor: () => gate }, world, start);
    }
    for (let i = 0; i < (run.keysOfAddress?.[number] ?? 0); i += 1) {
      const ticketFor = (onSettled: AdmissionCallback): Ticket =>
        new Ticket('up', `key ${i} of ${number}`, 1, [SHARED], onSettled, { addressGroup: 'address of keys' });
      const onKeyServed = (): void => {
        if (world.now >= run.from) result.keysServed += 1;
      };
      startClient({ ticketFor, onRefused, onServed: onKeyServed, gateFor: () => gate }, world, 2000 * random());
    }
  }
  for (const { member, client, address, endpoint } of run.impatient ?? []) {
    const [result, at] = [results[member], members[member]];
    if (result === undefined || at === undefined) throw new Error(`there is no member ${member}`);
    const refs = endpoint === undefined ? [SHARED] : [SHARED, endpointRef(endpoint)];
    const onServed = (): void => {
      if (world.now >= run.from) result.impatientServed += 1;
    };
    const ticketFor = (onSettled: AdmissionCallback): Ticket =>
      new Ticket('up', client, 1, refs, onSettled, { addressGroup: address });
    const parts = { ticketFor, onRefused: () => IMPATIENT_PAUSE, onServed, gateFor: () => at.gate };
    startClient(parts, world, 2000 * random());
  }
  for (let i = 0; i < (run.roaming ?? 0); i += 1) {
    let number = 0;
    const gateFor = (): Gate => {
      number = Math.floor(random() * members.length);
      const member = members[number];
      if (member === undefined) throw new Error(`there is no member ${number}`);
      return member.gate;
    };
    const onServed = (): void => {
      const result = results[number];
      if (result !== undefined && world.now >= run.from) result.roamingServed += 1;
    };
    const onRefused = (retryAfterMs: Millis): Millis =>
      1000 * Number(formatRetryAfter(retryAfterMs, random)) + CLIENT_DELAY;
    const ticketFor = (onSettled: AdmissionCallback): Ticket =>
      new Ticket('up', `roaming client ${i}`, 1, [SHARED], onSettled);
    startClient({ ticketFor, onRefused, onServed, gateFor }, world, 2000 * random());
  }
  const [first] = members;
  if (run.oneShot !== undefined && first !== undefined) startOneShotClients(run.oneShot, first.gate, world);
  world.run(run.until, (now) => {
    for (const { gate, wake } of members) {
      wake(now);
      if ((gate.nextWake() ?? Number.POSITIVE_INFINITY) <= now) gate.wake(now);
    }
  });
  return results;
}

interface ClientParts {
  readonly ticketFor: (onSettled: AdmissionCallback) => Ticket;
  /** The member that the next request asks. */
  readonly gateFor: () => Gate;
  /** Returns the pause until the next request. */
  readonly onRefused: (retryAfterMs: Millis) => Millis;
  readonly onServed: () => void;
}

function startClient(
  { ticketFor, gateFor, onRefused, onServed }: ClientParts,
  world: VirtualTime,
  start: Millis,
): void {
  const ask = (): void => {
    const gate = gateFor();
    const settle = (admission: AdmissionResult): void => {
      if (admission.kind === 'refused') {
        gate.onExchangeEnd(ticket);
        world.at(world.now + onRefused(admission.retryAfterMs), ask);
        return;
      }
      gate.onSent(ticket, world.now);
      world.at(world.now + RESPONSE_TIME, () => {
        gate.onOutcome(ticket, response(200), world.now);
        gate.onAttemptEnd(ticket, world.now);
        gate.onExchangeEnd(ticket);
        onServed();
        world.at(world.now + CLIENT_DELAY, ask);
      });
    };
    const ticket = ticketFor(settle);
    const admission = gate.requestAdmission(ticket, world.now + MAX_WAIT, world.now);
    if (admission !== undefined) settle(admission);
  };
  world.at(start, ask);
}

function startOneShotClients({ count, at, asks = 1 }: OneShotClients, gate: Gate, world: VirtualTime): void {
  for (let i = 0; i < count; i += 1) {
    const ask = (): void => {
      const settle = ({ kind }: AdmissionResult): void => {
        if (kind === 'admitted') {
          gate.onSent(ticket, world.now);
          gate.onOutcome(ticket, response(200), world.now);
          gate.onAttemptEnd(ticket, world.now);
        }
        gate.onExchangeEnd(ticket);
      };
      const ticket = new Ticket('up', `one-shot client ${i}`, 1, [SHARED], settle);
      const admission = gate.requestAdmission(ticket, world.now + MAX_WAIT, world.now);
      if (admission !== undefined) settle(admission);
    };
    for (let n = 0; n < asks; n += 1) world.at(at + i + 100 * n, ask);
  }
}

/** A clock in steps of a millisecond. */
class VirtualTime {
  now: Millis = 0;
  readonly #due = new Map<Millis, (() => void)[]>();

  at(time: Millis, run: () => void): void {
    const step = Math.max(this.now + STEP, Math.ceil(time));
    const due = this.#due.get(step);
    if (due === undefined) this.#due.set(step, [run]);
    else due.push(run);
  }

  run(until: Millis, afterEach: (now: Millis) => void): void {
    for (; this.now < until; this.now += STEP) {
      for (const run of this.#due.get(this.now) ?? []) run();
      this.#due.delete(this.now);
      afterEach(this.now);
    }
  }
}

function openStore({ rate, seed }: PoliteRun, options: Partial<MemoryStoreOptions>): MemoryStore {
  return new MemoryStore({
    upstreams: [
      upstreamSettings({
        rate: rateSettings(rate),
        nested: [{ name: 'endpoint', scope: 'upstream', isKeyed: true, rate: rateSettings(NESTED_RATE) }],
      }),
    ],
    maxTracked: 1000,
    random: seededRandom(seed + 1),
    listen: () => undefined,
    ...options,
  });
}

function rateSettings(rate: PerSecond): ReturnType<typeof upstreamSettings>['rate'] {
  return { initialRate: rate, maxRate: rate, minRate: 0.1, cooldown: 1000 };
}

function endpointRef(key: string): LimitRef {
  return { upstream: 'up', nested: 'endpoint', scope: 'upstream', key };
}

function openWorkers(run: PoliteRun, world: VirtualTime): Member[] {
  const limitClients: LimitClient[] = [];
  const server = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: ({ nested }) =>
        new LocalMeter(rateSettings(nested === '' ? run.rate : NESTED_RATE), seededRandom(run.seed + 2)),
      listen: () => undefined,
      send: (to, updates) => world.at(world.now + LATENCY, () => limitClients[to]?.onUpdates(updates, world.now)),
      maxLimits: 100,
    },
    [SHARED],
  );
  return run.clients.map((_, number): Member => {
    let flushAt = Number.POSITIVE_INFINITY;
    const client = new LimitClient({
      schedule: (within) => {
        flushAt = Math.min(flushAt, world.now + within);
      },
      send: (report) => world.at(world.now + LATENCY, () => server.onReport(number, report, world.now)),
    });
    limitClients[number] = client;
    const store = openStore(run, { makeMeter: (ref, rate) => client.makeMeter(ref, rate), sharingHooks: client });
    const gate = new Gate(store, () => undefined);
    client.bind({ store, onTokensSupplied: (limit, now) => gate.onTokensSupplied(limit, now) }, 0);
    server.join(number, 0);
    return {
      gate,
      wake: (now) => {
        if ((server.nextWake() ?? Number.POSITIVE_INFINITY) <= now) server.wake(now);
        if (flushAt > now) return;
        flushAt = Number.POSITIVE_INFINITY;
        client.flush(now);
      },
    };
  });
}

function openReplicas(run: PoliteRun, world: VirtualTime): Member[] {
  const backend = new MemoryBackend();
  return run.clients.map((_, number): Member => {
    const client = new ReplicaLimitClient({
      replicaId: `replica ${number}`,
      clock: { now: () => world.now },
      random: seededRandom(run.seed + 3 + number),
      call: (leaseClient, request) =>
        world.at(world.now + LATENCY, () => {
          const answer = backend.serve(leaseClient.ref, leaseClient.settings, request, world.now);
          world.at(world.now + LATENCY, () => leaseClient.onResponse(answer, world.now));
        }),
      publishHold: () => undefined,
      onDecrease: () => undefined,
      rearm: () => undefined,
      onDegraded: () => undefined,
    });
    const store = openStore(run, { makeMeter: (ref, rate) => client.makeMeter(ref, rate), sharingHooks: client });
    const gate = new Gate(store, () => undefined);
    client.bind({ store, onTokensSupplied: (limit, now) => gate.onTokensSupplied(limit, now) });
    return { gate, wake: (now) => client.wake(now) };
  });
}
