/** When a replica claims the first token of a limit of a client, and when it calls the backend about the limit. */
import { expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { limitId } from '../../../src/core/limits/limit-ref.ts';
import type { LeaseClient } from '../../../src/sharing/replicas/lease-client.ts';
import { claimRetention, limitRetention, MAX_RETENTION } from '../../../src/sharing/replicas/limit-retention.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaLimitClient } from '../../../src/sharing/replicas/replica-limit-client.ts';
import type { LeaseRequest } from '../../../src/sharing/replicas/replica-protocol.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { response, upstreamSettings } from '../../support/core/policy-builders.ts';

const RATE = { initialRate: 10, maxRate: 10, minRate: 0.1, cooldown: 1000 };
const LIMIT: LimitRef = { upstream: 'up', nested: '', scope: 'client', key: 'one' };
const SERVED = response(200);

/** A replica with a limit for each client. The backend responds when the test makes it respond. */
function startReplica() {
  let now = 0;
  const backend = new MemoryBackend();
  const calls: (LeaseRequest & { readonly name: string })[] = [];
  const claims: LeaseClient[] = [];
  const member = new ReplicaLimitClient({
    replicaId: 'a',
    clock: { now: () => now },
    random: () => 0.5,
    call: (client, call) => {
      calls.push({ ...call, name: client.ref.key });
      waiting.push(() => client.onResponse(backend.serve(client.ref, client.settings, call, now), now));
    },
    claim: (client) => void claims.push(client),
    publishHold: () => undefined,
    onDecrease: () => undefined,
    rearm: () => undefined,
    onDegraded: () => undefined,
  });
  const waiting: (() => void)[] = [];
  const store = new MemoryStore({
    upstreams: [upstreamSettings({ scope: 'client', rate: RATE })],
    maxTracked: 10,
    random: () => 0.5,
    listen: () => undefined,
    makeMeter: (ref, rate) => member.makeMeter(ref, rate),
    sharingHooks: member,
  });
  const gate = new Gate(store, () => undefined);
  member.bind({ store, onTokensSupplied: (limit, at) => gate.onTokensSupplied(limit, at) });
  const sent: Ticket[] = [];
  const replica = {
    calls,
    claims,
    sent,
    member,
    /** A request arrives. It is sent once it is admitted. */
    ask: (maxWait = 60_000, client = 'one'): void => {
      const ticket: Ticket = new Ticket('up', client, 1, [{ ...LIMIT, key: client }], (admission, at) => {
        if (admission.kind === 'admitted') replica.send(ticket, at);
      });
      if (gate.requestAdmission(ticket, now + maxWait, now)?.kind === 'admitted') replica.send(ticket, now);
    },
    send: (ticket: Ticket, at: number): void => {
      gate.onSent(ticket, at);
      sent.push(ticket);
    },
    answer: (ticket: Ticket | undefined, outcome: AttemptOutcome = SERVED): void => {
      if (ticket === undefined) throw new Error('not sent');
      gate.onOutcome(ticket, outcome, now);
      gate.onAttemptEnd(ticket, now);
      gate.onExchangeEnd(ticket);
    },
    /** The backend answers all calls. */
    pass: (time: number): void => {
      for (; now < time; now += 1) {
        for (const deliver of waiting.splice(0)) deliver();
        member.wake(now);
        if ((gate.nextWake() ?? Number.POSITIVE_INFINITY) <= now) gate.wake(now);
      }
    },
    onClaimed: (isGranted: boolean): void => claims.at(-1)?.onClaimed(isGranted ? now : undefined, now),
    onNoResponse: (): void => claims.at(-1)?.onNoResponse(now),
  };
  return replica;
}

/** A replica that has sent the first request of a client with a claimed token. */
function startClaimed(): ReturnType<typeof startReplica> {
  const replica = startReplica();
  replica.ask();
  replica.pass(5);
  replica.onClaimed(true);
  expect([replica.claims.length, replica.sent.length]).toEqual([1, 1]);
  return replica;
}

test('sends the first request of a client with a claimed token, and reports a success with the call for the second', () => {
  const replica = startClaimed();
  replica.pass(20);
  replica.answer(replica.sent[0]);
  replica.pass(2000);
  expect(replica.calls).toEqual([]);
  replica.ask();
  replica.pass(2010);
  expect(replica.calls.map(({ want, usage }) => [want, usage.length > 0])).toEqual([[1, true]]);
  expect([replica.claims.length, replica.sent.length]).toEqual([1, 2]);
});

test('calls the backend at once if the claim is refused', () => {
  const replica = startReplica();
  replica.ask();
  replica.pass(5);
  replica.onClaimed(false);
  expect(replica.sent).toEqual([]);
  replica.pass(8);
  expect([replica.calls.length, replica.sent.length]).toEqual([1, 1]);
});

test('calls the backend for the second of two requests that arrive together', () => {
  const replica = startReplica();
  replica.ask();
  replica.ask();
  replica.pass(5);
  replica.onClaimed(true);
  expect([replica.calls.length, replica.sent.length]).toEqual([0, 1]);
  replica.pass(300);
  expect([replica.claims.length, replica.sent.length]).toEqual([1, 2]);
});

test.each<[string, AttemptOutcome]>([
  ['a rejection', response(429, { retryAfterMs: 1000 })],
  ['an error', response(503)],
  ['a quota', response(200, { quota: { remaining: 5, limit: 10, resetIn: 60_000, window: undefined } })],
])('reports %s of the first request', (_outcome, outcome) => {
  const replica = startClaimed();
  replica.answer(replica.sent[0], outcome);
  replica.pass(200);
  expect(replica.calls).toHaveLength(1);
});

test('calls the backend once another replica has changed the limit', () => {
  const replica = startClaimed();
  replica.answer(replica.sent[0]);
  const { terms } = new MemoryBackend().serve(LIMIT, RATE, idleCall(), 0);
  replica.member.onBroadcast({ limitId: limitId(LIMIT), terms, now: 0 }, 10);
  replica.pass(20);
  expect(replica.calls).toHaveLength(1);
});

test('limits requests alone if a claim has no response, and calls once to find that the backend responds again', () => {
  const replica = startReplica();
  replica.ask();
  replica.pass(5);
  replica.onNoResponse();
  expect([replica.calls.length, replica.sent.length]).toEqual([0, 1]);
  replica.pass(1000);
  expect(replica.calls).toHaveLength(1);
});

test('makes no calls for limits that were first used while the backend was unreachable, until their next requests', () => {
  const replica = startReplica();
  for (const client of ['one', 'two', 'three']) {
    replica.ask(60_000, client);
    replica.pass(5);
    if (client === 'one') replica.onNoResponse();
  }
  expect(replica.claims).toHaveLength(1);
  expect(replica.sent).toHaveLength(3);
  replica.pass(1000);
  const called = (): string[] => replica.calls.map(({ name }) => name);
  expect(called()).toEqual(['one']);
  // The backend responds again, so their next tokens are from there.
  replica.ask(60_000, 'two');
  expect(replica.sent).toHaveLength(3);
  replica.pass(1010);
  expect(called()).toEqual(['one', 'two']);
  expect(replica.sent).toHaveLength(4);
});

test('calls the backend for a limit that is used twice while the backend is unreachable', () => {
  const replica = startReplica();
  for (const client of ['one', 'two', 'two']) {
    replica.ask(60_000, client);
    replica.pass(5);
    if (client === 'one') replica.onNoResponse();
  }
  replica.pass(1000);
  expect(replica.calls.map(({ name }) => name)).toEqual(expect.arrayContaining(['one', 'two']));
});

test('makes neither a claim nor a call for a request that is refused', () => {
  const replica = startReplica();
  for (let i = 0; i < 3; i += 1) {
    replica.ask(-1);
    replica.pass(100 * i);
  }
  expect([replica.sent, replica.claims, replica.calls]).toEqual([[], [], []]);
});

test.each([1000, 10, 1, 0.1, 1 / 1800])('keeps a claim until the second token is due at %d/s', (rate) => {
  const settings = { ...RATE, initialRate: rate, maxRate: rate };
  const meter = new LocalMeter(settings, () => 0.5);
  meter.take(0, 0);
  const kept = claimRetention(settings);
  expect(kept).toBeGreaterThan(meter.delay(0));
  expect(kept).toBe(Math.ceil(limitRetention(meter, settings, 0)));
});

test('keeps the claim of a rate below one an hour for an hour, and that of a limit without a rate for seconds', () => {
  expect(claimRetention({ initialRate: 0.0001, maxRate: 1 })).toBe(MAX_RETENTION);
  expect(claimRetention({ initialRate: undefined, maxRate: Number.POSITIVE_INFINITY })).toBe(3000);
});

function idleCall(): LeaseRequest {
  return {
    replicaId: 'b',
    now: 0,
    usage: new Float64Array(0),
    leasedTokens: 0,
    inFlight: 0,
    unanswered: 0,
    want: 0,
    weight: 0,
    roundTrip: 0,
    known: {
      epoch: 0,
      since: Number.NEGATIVE_INFINITY,
      rate: Number.POSITIVE_INFINITY,
      ceiling: Number.POSITIVE_INFINITY,
    },
    random: 0.5,
    waitingGroups: [],
    returningGroups: [],
  };
}
