/** Requests that wait for tokens or connections while a reload changes the limits of their upstream. */
import { expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { LimitScope } from '../../../src/core/limits/limit-state.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const RATE = { initialRate: undefined, maxRate: 1, minRate: 0.1, cooldown: 1000 };
const FREE = { ...RATE, maxRate: 1000 };
const QUEUE = { maxWait: 60_000, maxDepth: 1000 };
const INNER: LimitRef = { upstream: 'up', nested: 'inner', scope: 'upstream', key: '' };
const INNER_SETTINGS = { name: 'inner', scope: 'upstream', isKeyed: false, rate: FREE } as const;

const ofClient = (client: string): LimitRef => ({ upstream: 'up', nested: '', scope: 'client', key: client });

interface Guest {
  readonly ticket: Ticket;
  admission: AdmissionResult | undefined;
}

class ReloadedGate {
  readonly store: MemoryStore;
  readonly gate: Gate;
  free: number;
  now: Millis = 0;

  constructor(settings: Partial<UpstreamSettings>, free = Number.POSITIVE_INFINITY) {
    const listen = (): void => undefined;
    this.free = free;
    this.store = new MemoryStore({
      upstreams: [upstreamSettings({ queue: QUEUE, ...settings })],
      maxTracked: 100,
      random: () => 0.5,
      listen,
      connections: new Map([['up', { totalConnections: () => free, freeConnections: () => this.free }]]),
    });
    this.gate = new Gate(this.store, listen);
  }

  reload(settings: Partial<UpstreamSettings>): void {
    this.store.configure([upstreamSettings({ queue: QUEUE, ...settings })], 100);
    this.gate.reevaluateQueues(this.now);
    this.store.sweep();
  }

  arrive(client: string, refs: readonly LimitRef[]): Guest {
    const guest: Guest = {
      ticket: new Ticket('up', client, 1, refs, (admission) => {
        guest.admission = admission;
      }),
      admission: undefined,
    };
    guest.admission = this.gate.requestAdmission(guest.ticket, this.now + QUEUE.maxWait, this.now);
    return guest;
  }

  pass(time: Millis): void {
    const end = this.now + time;
    for (let at = this.gate.nextWake(); at !== undefined && at <= end; at = this.gate.nextWake()) {
      this.now = Math.max(this.now, at);
      this.gate.wake(this.now);
    }
    this.now = end;
  }

  /** A connection is free again. */
  vacate(): void {
    this.free += 1;
    this.gate.connections.onFree('up', this.now);
  }

  answer({ ticket }: Guest): void {
    this.gate.onSent(ticket, this.now);
    this.gate.onOutcome(ticket, response(200), this.now);
    this.gate.onAttemptEnd(ticket, this.now);
    this.gate.onExchangeEnd(ticket);
  }
}

const kindOf = ({ admission }: Guest): string => admission?.kind ?? 'waits';

test('a client with an unused new limit does not wait for requests that wait at the former one', () => {
  const at = new ReloadedGate({ rate: RATE });
  const waiting = Array.from({ length: 5 }, () => at.arrive('a', [SHARED]));
  at.reload({ rate: RATE, scope: 'client' });
  expect([at.arrive('a', [ofClient('a')]), at.arrive('b', [ofClient('b')])].map(kindOf)).toEqual([
    'admitted',
    'admitted',
  ]);
  at.pass(4000);
  expect(waiting.map(kindOf)).toEqual(Array(5).fill('admitted'));
});

test('a client with an unused new limit is not refused for those that wait at a nested limit for the former one', () => {
  const nested = [INNER_SETTINGS];
  const at = new ReloadedGate({ rate: RATE, nested });
  const waiting = ['a', 'b', 'c', 'd'].map((client) => at.arrive(client, [SHARED, INNER]));
  at.reload({ rate: RATE, nested, scope: 'client', queue: { maxWait: 1000, maxDepth: 1000 } });
  const fresh = at.arrive('fresh', [ofClient('fresh'), INNER]);
  at.pass(10);
  expect([...waiting, fresh].map(kindOf)).toEqual(['admitted', 'waits', 'waits', 'waits', 'admitted']);
});

test.each<readonly [from: LimitScope, to: LimitScope]>([
  ['upstream', 'client'],
  ['client', 'upstream'],
])('requests that wait for a connection are served in order after a change of scope from %s to %s', (from, to) => {
  const refs = { upstream: () => SHARED, client: ofClient, credential: ofClient };
  const at = new ReloadedGate({ scope: from, rate: FREE }, 0);
  const waiting = ['a', 'b'].map((client) => at.arrive(client, [refs[from](client)]));
  at.pass(10);
  at.reload({ scope: to, rate: FREE });
  at.pass(10); // the second has a token of the former limit
  const fresh = at.arrive('c', [refs[to]('c')]);
  const all = [...waiting, fresh];
  const served: string[] = [];
  for (const _ of all) {
    at.vacate();
    const next = all.filter((guest) => kindOf(guest) === 'admitted' && guest.ticket.reservedSlots !== undefined);
    expect(next).toHaveLength(1);
    for (const guest of next) {
      at.free -= 1;
      at.answer(guest);
      served.push(guest.ticket.client);
    }
  }
  expect(served).toEqual(['a', 'b', 'c']);
  at.reload({ scope: to, rate: FREE });
  expect(at.gate.view(at.now).limits.map(({ queued }) => queued)).not.toContain(1);
});

test('a request that waits for a connection through two changes of scope holds its tokens once', () => {
  const at = new ReloadedGate({ scope: 'upstream', rate: FREE }, 0);
  const guest = at.arrive('a', [SHARED]);
  at.reload({ scope: 'client', rate: FREE });
  at.reload({ scope: 'upstream', rate: FREE });
  at.pass(10);
  expect(kindOf(guest)).toBe('waits');
  at.vacate();
  expect(kindOf(guest)).toBe('admitted');
  const shared = at.store.findLimit(SHARED);
  let released = 0;
  if (shared !== undefined) {
    const { meter } = shared;
    const release = meter.release.bind(meter);
    meter.release = () => {
      released += 1;
      release();
    };
  }
  at.answer(guest);
  expect(released).toBe(1);
});

test('a repeated request finds the limit of all requests once its own limit is gone', () => {
  const at = new ReloadedGate({ scope: 'client', rate: RATE });
  at.answer(at.arrive('a', [ofClient('a')]));
  at.reload({ scope: 'upstream', rate: RATE });
  expect(at.store.findLimit(ofClient('a'))).toBe(at.store.findLimit(SHARED));
  at.reload({ scope: 'client', rate: RATE });
  expect(at.store.findLimit(SHARED)).toBeUndefined();
  const made = at.store.findOrCreateLimit(SHARED);
  expect([...at.store.limits()]).not.toContain(made);
});
