import { Gate } from '../../../src/core/admission/gate.ts';
import type { Admission } from '../../../src/core/admission/ticket.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Clock, Millis, Outcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Borrower } from '../../../src/sharing/replicas/lease-client.ts';
import { MemoryPool } from '../../../src/sharing/replicas/memory-backend.ts';
import { PoolMember } from '../../../src/sharing/replicas/replica-limit-client.ts';
import type { Answer, Call } from '../../../src/sharing/replicas/replica-protocol.ts';
import type { Caller } from '../../../src/sharing/redis/redis-backend.ts';
import { RedisPool } from '../../../src/sharing/redis/redis-backend.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { REFS, settingsFor, UPSTREAM } from '../policy/crowd.ts';
import type { BenchRedis } from './redis.ts';

/** Requests a second of one replica, and a limit that is held to and has room for them. */
const RATE = 1000;
const LIMIT = 2000;
const CLIENTS = 100;
const SERVICE: Millis = 20;
const ROUND_TRIP: Millis = 1;
const PATIENCE: Millis = 10_000;
const STRETCHES = 10;
const ACCEPTED: Outcome = { kind: 'response', status: 200, hints: NO_HINTS, took: SERVICE };

/** What a replica pays for sharing a limit, in microseconds of processor time. */
export interface NodeCost {
  /** A request, but for the calls: with a limit borrowed of a pool, and with one of its own. */
  readonly shared: number;
  readonly own: number;
  /** One call: written, read, and the kernel's part in it. */
  readonly call: number;
  /** At `RATE`. */
  readonly callsPerRequest: number;
}

/**
 * By parts, each the best of ten stretches: processor time of a whole process at that rate is mostly that of its timers.
 * @param requests of each stretch @param calls of each stretch
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

/** In virtual time, a millisecond at a turn. */
class Replica {
  requests = 0;
  calls = 0;
  #lastCall: Call | undefined;
  readonly #pool = new MemoryPool();
  readonly #calling: { readonly borrower: Borrower; readonly call: Call; readonly at: Millis }[] = [];
  readonly #underway: { readonly ticket: Ticket; readonly answeredAt: Millis }[] = [];
  readonly #member: PoolMember | undefined;
  readonly #gate: Gate;
  #now: Millis = 0;
  /** What the pool itself takes is Redis' cost. */
  #spentByPool: Millis = 0;

  constructor(kind: 'shared' | 'own') {
    const clock: Clock = { now: () => this.#now };
    const settings = settingsFor(LIMIT);
    const parts = { upstreams: [settings], maxTracked: 1000, random: Math.random, listen: () => undefined };
    const member = kind === 'own' ? undefined : new PoolMember(this.#memberParts(clock));
    this.#member = member;
    const store = new MemoryStore({
      ...parts,
      ...(member === undefined ? {} : { makeMeter: (ref, rate) => member.makeMeter(ref, rate), sharing: member }),
    });
    this.#gate = new Gate(store, parts.listen);
    member?.wire({ store, supply: (limit, now) => this.#gate.supply(limit, now) });
  }

  get lastCall(): Call {
    if (this.#lastCall === undefined) throw new Error('a replica that shares has called nobody');
    return this.#lastCall;
  }

  /** @returns microseconds a request */
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
      this.#gate.head(first.ticket, ACCEPTED, now);
      this.#gate.end(first.ticket, now);
      this.#gate.leave(first.ticket);
    }
    for (let first = this.#calling[0]; first !== undefined && first.at <= now; first = this.#calling[0]) {
      this.#calling.shift();
      first.borrower.hear(this.#ask(first.borrower, first.call), now);
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
    const admission = this.#gate.arrive(ticket, now + PATIENCE, now);
    if (admission !== undefined) this.#settle(ticket, admission, now);
  }

  #settle(ticket: Ticket, admission: Admission, now: Millis): void {
    if (admission.kind !== 'admitted') return this.#gate.leave(ticket);
    this.#gate.sent(ticket, now);
    this.#underway.push({ ticket, answeredAt: now + SERVICE });
  }

  #ask({ ref, settings }: Borrower, call: Call): Answer {
    const began = performance.now();
    const answer = this.#pool.call(ref, settings, call, this.#now);
    this.#spentByPool += performance.now() - began;
    return answer;
  }

  #memberParts(clock: Clock): ConstructorParameters<typeof PoolMember>[0] {
    return {
      holder: 'replica',
      clock,
      random: Math.random,
      call: (borrower, call) => {
        this.calls += 1;
        // One that tells of as much as they do in the end.
        if (this.calls % 10 === 0) this.#lastCall = call;
        this.#calling.push({ borrower, call, at: this.#now + ROUND_TRIP });
      },
      hold: () => undefined,
      onCut: () => undefined,
      rearm: () => undefined,
      onAway: () => undefined,
    };
  }
}

const asker: { -readonly [Part in keyof Caller]: Caller[Part] } = {
  ref: { upstream: UPSTREAM, nested: '', scope: 'upstream', key: '' },
  settings: settingsFor(LIMIT).rate,
  hear: () => undefined,
  miss: () => undefined,
};

/** One after the other, as a limit makes them. */
async function measureCall({ url }: BenchRedis, call: Call, count: number): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const pool = new RedisPool({
    place: {
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
    timeout: PATIENCE,
    clock: performance,
    random: Math.random,
    onRequest: () => undefined,
    onNews: () => undefined,
    onHold: () => undefined,
    onDeaf: () => undefined,
    onSign: () => undefined,
  });
  await pool.open(PATIENCE);
  const ask = (): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    asker.hear = resolve;
    asker.miss = () => reject(new Error(`Redis does not answer: ${pool.problem}`));
    pool.call(asker, call);
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
