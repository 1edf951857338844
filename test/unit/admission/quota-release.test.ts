/** Queued requests that a quota in force does not cover are released, however many it covers in front of them. */
import { expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionResult } from '../../../src/core/admission/gate-decision.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { limitedTo, response, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const SPENT = { remaining: 0, limit: 10_000, resetIn: 3_600_000, window: undefined };

interface Request {
  readonly client: string;
  readonly credential: number;
}

class RequestTicket extends Ticket {
  readonly #credential: number;
  admission: AdmissionResult | undefined;

  constructor({ client, credential }: Request, address: string | undefined) {
    super(
      'up',
      client,
      1,
      [SHARED],
      (admission) => {
        this.admission = admission;
      },
      { addressGroup: address },
    );
    this.#credential = credential;
  }

  protected override credential(): number {
    return this.#credential;
  }
}

/** A gate in front of an upstream with a rate of 1/s. */
function startGate() {
  let now: Millis = 0;
  const store = new MemoryStore({
    upstreams: [
      upstreamSettings({
        ...limitedTo(1),
        queue: { maxWait: 3_600_000, maxDepth: 100_000 },
      }),
    ],
    maxTracked: 100_000,
    random: () => 0.5,
    listen: () => undefined,
  });
  const gate = new Gate(store, () => undefined);
  return {
    store,
    ask: (request: Request, address?: string): RequestTicket => {
      const ticket = new RequestTicket(request, address);
      ticket.admission = gate.requestAdmission(ticket, now + 3_600_000, now);
      return ticket;
    },
    answer: (ticket: Ticket, quota: typeof SPENT): void => {
      gate.onSent(ticket, now);
      gate.onOutcome(ticket, response(200, { quota }), now);
      gate.onAttemptEnd(ticket, now);
      gate.onExchangeEnd(ticket);
    },
    /** Advances the clock, with each wake in between. Returns the number of wakes. */
    until: (time: Millis): number => {
      let wakes = 0;
      for (let next = gate.nextWake(); next !== undefined && next <= time; next = gate.nextWake()) {
        now = Math.max(now, next);
        gate.wake(now);
        wakes += 1;
      }
      now = time;
      return wakes;
    },
  };
}

test.each([500, 1001, 5000])(
  'releases a quota of one credential for a queued request with another, behind %d requests that it covers',
  (count) => {
    const { store, ask, answer, until } = startGate();
    const neighbour = ask({ client: 'neighbour', credential: 1 });
    until(1000);
    const first = ask({ client: 'k', credential: 1 }, 'crowd');
    expect([neighbour.admission, first.admission]).toEqual([{ kind: 'admitted' }, { kind: 'admitted' }]);
    for (let i = 0; i < count; i += 1) ask({ client: `k${i}`, credential: 1 }, 'crowd');
    const other = ask({ client: 'other', credential: 2 });
    answer(neighbour, { ...SPENT, remaining: 1, resetIn: 0 });
    answer(first, SPENT);
    until(1100);
    expect(store.findLimit(SHARED)?.meter.isQuotaInForce(1100)).toBe(false);
    until(5000);
    expect(other.admission).toEqual({ kind: 'admitted' });
  },
);

test('releases a quota for a request of a client whose first request it covers', () => {
  const { store, ask, answer, until } = startGate();
  const neighbour = ask({ client: 'neighbour', credential: 1 });
  until(1000);
  const first = ask({ client: 'proxy', credential: 1 });
  for (let i = 0; i < 2000; i += 1) ask({ client: 'proxy', credential: i < 1999 ? 1 : 2 });
  answer(neighbour, { ...SPENT, remaining: 1, resetIn: 0 });
  answer(first, SPENT);
  until(1100);
  expect(store.findLimit(SHARED)?.meter.isQuotaInForce(1100)).toBe(false);
});

test('wakes a few times to check 4500 waiting requests, and keeps a quota that covers all of them', () => {
  const { store, ask, answer, until } = startGate();
  const neighbour = ask({ client: 'neighbour', credential: 1 });
  until(1000);
  const first = ask({ client: 'k', credential: 1 }, 'crowd');
  for (let i = 0; i < 4500; i += 1) ask({ client: `k${i}`, credential: 1 }, 'crowd');
  answer(neighbour, { ...SPENT, remaining: 1, resetIn: 0 });
  answer(first, SPENT);
  expect(until(60_000)).toBeLessThanOrEqual(10);
  expect(store.findLimit(SHARED)?.meter.isQuotaInForce(60_000)).toBe(true);
});
