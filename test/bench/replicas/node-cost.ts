import { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Clock, Millis } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import type { LeaseClient } from '../../../src/sharing/replicas/lease-client.ts';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaLimitClient } from '../../../src/sharing/replicas/replica-limit-client.ts';
import type { LeaseResponse, LeaseRequest } from '../../../src/sharing/replicas/replica-protocol.ts';
import type { LeaseCaller } from '../../../src/sharing/redis/limit-calls.ts';
import { RedisBackend } from '../../../src/sharing/redis/redis-backend.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { REFS, settingsFor, UPSTREAM } from '../policy/client-population.ts';
import type { BenchRedis } from './redis.ts';

/** Requests a second of one replica, below a limit in force. */
const RATE = 1000;
const LIMIT = 2000;
const CLIENTS = 100;
const SERVICE: Millis = 20;
const ROUND_TRIP: Millis = 1;
const TIMEOUT: Millis = 10_000;
const STRETCHES = 10;
const ACCEPTED: AttemptOutcome = { kind: 'response', status: 200, hints: NO_HINTS, took: SERVICE };

/** The cost of sharing a limit for a replica, in CPU microseconds. */
export interface NodeCost {
  /** Cost per request without calls: with a shared limit, and with a local one. */
  readonly shared: number;
  readonly own: number;
  /** Cost per call, including encoding, decoding and the kernel. */
  readonly call: number;
  /** Calls per request at `RATE`. */
  readonly callsPerRequest: number;
}

/**
 * Measures the parts, each as the best of ten runs, because most CPU time of a whole process at that rate is spent on timers.
 * @param requests of each run @param calls of each run
 */
export async function measureNodeCost(redis: BenchRedis, requests: number, calls: number): Promise<NodeCost> {
  const shared = new Replica('shared');
  const own = new Replica('own');
  const costs = { shared: Number.POSITIVE_INFINITY, own: Number.POSITIVE_INFINITY };
  for (let left = STRETCHES; left > 0; left -= 1) {
    costs.shared = Math.min(costs.shared, shared.drive(requests));
    costs.own = Math.min(costs.own, own.drive(requests));
  }
  const call = await measureCall(redis, shared.lastCall, calls);
  return { ...costs, call, callsPerRequest: shared.calls / shared.requests };
}

/** A replica in virtual time, advanced by milliseconds. */
class Replica {
  requests = 0;
  calls = 0;
  #lastCall: LeaseRequest | undefined;
  readonly #pool = new MemoryBackend();
  readonly #calling: { readonly borrower: LeaseClient; readonly call: LeaseRequest; readonly at: Millis }[] = [];
  readonly #underway: { readonly ticket: Ticket; readonly answeredAt: Millis }[] = [];
  readonly #member: ReplicaLimitClient | undefined;
  readonly #gate: Gate;
  #now: Millis = 0;
  /** CPU time of the pool, which is part of Redis' cost. */
  #spentByPool: Millis = 0;

  constructor(kind: 'shared' | 'own') {
    const clock: Clock = { now: () => this.#now };
    const settings = settingsFor(LIMIT);
    const parts = { upstreams: [settings], maxTracked: 1000, random: Math.random, listen: () => undefined };
    const member = kind === 'own' ? undefined : new ReplicaLimitClient(this.#memberParts(clock));
    this.#member = member;
    const store = new MemoryStore({
      ...parts,
      ...(member === undefined ? {} : { makeMeter: (ref, rate) => member.makeMeter(ref, rate), sharingHooks: member }),
    });
    this.#gate = new Gate(store, parts.listen);
    member?.bind({ store, onTokensSupplied: (limit, now) => this.#gate.onTokensSupplied(limit, now) });
  }

  get lastCall(): LeaseRequest {
    if (this.#lastCall === undefined) throw new Error('a sharing replica has made no call');
    return this.#lastCall;
  }

  /** @returns microseconds per request */
  drive(requests: number): number {
    const began = performance.now();
    this.#spentByPool = 0;
    for (let left = requests; left > 0; left -= 1) this.#turn();
    this.requests += requests;
    return (1000 * (performance.now() - began - this.#spentByPool)) / requests;
  }

  #turn(): void {
    this.#now += 1000 / RATE;
    const now = this.#now;
    for (let first = this.#underway[0]; first !== undefined && first.answeredAt <= now; first = this.#underway[0]) {
      this.#underway.shift();
      this.#gate.onOutcome(first.ticket, ACCEPTED, now);
      this.#gate.onAttemptEnd(first.ticket, now);
      this.#gate.onExchangeEnd(first.ticket);
    }
    for (let first = this.#calling[0]; first !== undefined && first.at <= now; first = this.#calling[0]) {
      this.#calling.shift();
      first.borrower.onResponse(this.#ask(first.borrower, first.call), now);
    }
    this.#arrive(now);
    if ((this.#member?.nextWake() ?? Number.POSITIVE_INFINITY) <= now) this.#member?.wake(now);
    if ((this.#gate.nextWake() ?? Number.POSITIVE_INFINITY) <= now) this.#gate.wake(now);
  }

  #arrive(now: Millis): void {
    const client = `client-${Math.round(now) % CLIENTS}`;
    const ticket: Ticket = new Ticket(UPSTREAM, client, 1, REFS, (admission, at) =>
      this.#settle(ticket, admission, at),
    );
    const admission = this.#gate.requestAdmission(ticket, now + TIMEOUT, now);
    if (admission !== undefined) this.#settle(ticket, admission, now);
  }

  #settle(ticket: Ticket, admission: AdmissionResult, now: Millis): void {
    if (admission.kind !== 'admitted') return this.#gate.onExchangeEnd(ticket);
    this.#gate.onSent(ticket, now);
    this.#underway.push({ ticket, answeredAt: now + SERVICE });
  }

  #ask({ ref, settings }: LeaseClient, call: LeaseRequest): LeaseResponse {
    const began = performance.now();
    const answer = this.#pool.serve(ref, settings, call, this.#now);
    this.#spentByPool += performance.now() - began;
    return answer;
  }

  #memberParts(clock: Clock): ConstructorParameters<typeof ReplicaLimitClient>[0] {
    return {
      replicaId: 'replica',
      clock,
      random: Math.random,
      call: (borrower, call) => {
        this.calls += 1;
        // A call with a typical number of requests.
        if (this.calls % 10 === 0) this.#lastCall = call;
        this.#calling.push({ borrower, call, at: this.#now + ROUND_TRIP });
      },
      publishHold: () => undefined,
      onDecrease: () => undefined,
      rearm: () => undefined,
      onDegraded: () => undefined,
    };
  }
}

const asker: { -readonly [Part in keyof LeaseCaller]: LeaseCaller[Part] } = {
  ref: { upstream: UPSTREAM, nested: '', scope: 'upstream', key: '' },
  settings: settingsFor(LIMIT).rate,
  onResponse: () => undefined,
  onClaimed: () => undefined,
  onNoResponse: () => undefined,
};

/** Measures sequential calls, as a limit makes them. */
async function measureCall({ url }: BenchRedis, call: LeaseRequest, count: number): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const pool = new RedisBackend({
    location: {
      kind: 'single',
      nodes: [{ host, port: Number(port) }],
      db: 0,
      name: undefined,
      username: undefined,
      password: undefined,
      sentinelUsername: undefined,
      sentinelPassword: undefined,
      tls: undefined,
    },
    prefix: 'cost',
    timeout: TIMEOUT,
    clock: performance,
    random: Math.random,
    onRequest: () => undefined,
    onBroadcast: () => undefined,
    onHold: () => undefined,
    onPubSubLost: () => undefined,
    onRecoverySign: () => undefined,
    onKeyNews: () => undefined,
    onNotice: () => undefined,
  });
  await pool.open(TIMEOUT);
  const ask = (): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    asker.onResponse = resolve;
    asker.onNoResponse = () => reject(new Error(`Redis does not answer: ${pool.problem}`));
    pool.lease(asker, call);
    return promise;
  };
  await ask(); // loads the script
  let least = Number.POSITIVE_INFINITY;
  for (let left = STRETCHES; left > 0; left -= 1) {
    const before = process.cpuUsage();
    for (let each = count; each > 0; each -= 1) await ask();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / count);
  }
  pool.close();
  return least;
}
