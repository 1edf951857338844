import { expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { MemoryAccountStore } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaSharedLimit } from '../../../src/sharing/replicas/replica-shared-limit.ts';
import { UsageLog } from '../../../src/sharing/protocol/usage-log.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import type { LimitUpdates, UsageReport } from '../../../src/sharing/workers/worker-protocol.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const SETTINGS = upstreamSettings();

/** The meter of a limit of two requests in flight, or of so many. */
function twoPlaces(rate = 50, places = 2): LocalMeter {
  const meter = new LocalMeter(SETTINGS.rate, () => 0.5);
  meter.resume(rate, rate, 0, places);
  return meter;
}

/** Workers that share such a limit, and their messages, which arrive when they are passed on. */
function startWorkers(size: number, { rate = 50, places = 2, stalled = 0 } = {}) {
  let now: Millis = 0;
  const messages: (() => void)[] = [];
  const workers: { readonly client: LimitClient; readonly gate: Gate }[] = [];
  const server: LimitServer = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: () => twoPlaces(rate, places),
      listen: () => undefined,
      send: (to, updates: LimitUpdates) => messages.push(() => workers[to]?.client.onUpdates(updates, now)),
      maxLimits: 10,
    },
    [SHARED],
  );
  const passMessages = (): void => {
    for (let round = 0; round < 10; round += 1) {
      now += 1;
      for (const { client } of workers) client.flush(now);
      for (const message of messages.splice(0)) message();
    }
  };
  for (let worker = 0; worker < size; worker += 1) {
    const client = new LimitClient({
      schedule: () => undefined,
      send: (report: UsageReport) => messages.push(() => server.onReport(worker, report, now)),
    });
    const store = new MemoryStore({
      upstreams: [SETTINGS],
      maxTracked: 10,
      random: () => 0.5,
      listen: () => undefined,
      connections: new Map([
        ['up', { totalConnections: () => 100, freeConnections: () => 100, stalled: () => stalled }],
      ]),
      makeMeter: (ref, rate) => client.makeMeter(ref, rate),
      sharingHooks: client,
    });
    const gate = new Gate(store, () => undefined);
    client.bind({ store, onTokensSupplied: (limit, at) => gate.onTokensSupplied(limit, at) }, now);
    workers.push({ client, gate });
    server.join(worker, now);
  }
  passMessages();
  return {
    /** Sends a request as soon as it is admitted. */
    ask: (worker: number): Ticket => {
      const { gate } = workers[worker]!;
      const ticket: Ticket = new Ticket('up', 'client', 1, [SHARED], () => gate.onSent(ticket, now));
      if (gate.requestAdmission(ticket, now + 60_000, now)?.kind === 'admitted') gate.onSent(ticket, now);
      passMessages();
      return ticket;
    },
    end: (worker: number, ticket: Ticket): void => {
      workers[worker]?.gate.onAttemptEnd(ticket, now);
      passMessages();
    },
    leave: (worker: number, ticket: Ticket): void => {
      workers[worker]?.gate.cancel(ticket, now);
      passMessages();
    },
    pass: (time: Millis): void => {
      for (let passed = 0; passed < time; passed += 10) passMessages();
    },
    rates: (): number[] => workers.map(({ gate }) => gate.view(now).limits[0]?.rate ?? Number.NaN),
    pin: (): void => {
      server.applyOverride('up', { action: 'pin', rate: 0.001 }, now);
      passMessages();
    },
    awaited: (): number[] =>
      workers.map(({ gate }) =>
        gate.connections
          .awaitedEnds('up', now)
          .reduce((sum, { count, limit }) => sum + (limit === undefined ? 0 : count), 0),
      ),
  };
}

test('a worker whose requests wait awaits a place for each, until the requests are admitted', () => {
  const { ask, end, awaited } = startWorkers(2);
  const first = ask(0);
  const second = ask(1);
  expect(awaited()).toEqual([0, 0]);
  const third = ask(1);
  const fourth = ask(1);
  expect([third, fourth].map(({ inFlightLimits }) => inFlightLimits.length)).toEqual([0, 0]);
  expect(awaited()).toEqual([0, 2]);
  end(0, first);
  expect([third, fourth].map(({ inFlightLimits }) => inFlightLimits.length)).toEqual([1, 0]);
  expect(awaited()).toEqual([0, 1]);
  end(1, second);
  expect(awaited()).toEqual([0, 0]);
});

test.each([0, 1])(
  'a worker refuses a request for its estimated wait only while no stalled client there can be aborted: %i',
  (stalled) => {
    // While no request has a response, the rate that results from the places is very low.
    const { ask, leave } = startWorkers(1, { rate: 0.1, stalled });
    for (let i = 0; i < 2; i += 1) ask(0);
    leave(0, ask(0)); // the refused request shows that all places are taken
    expect(ask(0).waitingLimit !== undefined).toBe(stalled > 0);
  },
);

test('the slow requests of one worker lower the rate of the places no further than to places ÷ service time', () => {
  const { ask, end, leave, pass, rates } = startWorkers(2, { places: 6 });
  const fill = () => [0, 0, 0, 0, 0, 0].map((worker) => ask(worker));
  for (let round = 0; round < 5; round += 1) {
    const slow = fill();
    pass(2900);
    for (const ticket of slow) end(0, ticket);
  }
  const slow = fill(); // 3 s each: two places become free each second
  pass(1500);
  for (let i = 0; i < 5; i += 1) {
    const waiting = ask(1);
    expect(waiting.waitingLimit).toBeDefined();
    pass(100);
    leave(1, waiting);
  }
  for (const rate of rates()) expect(Math.abs(rate - 2)).toBeLessThan(0.2);
  const last = ask(1);
  for (const ticket of slow.slice(0, 1)) end(0, ticket);
  expect(last.inFlightLimits).toHaveLength(1);
});

test('with a pinned rate, the requests of a worker wait for the rate and not for a place', () => {
  const { ask, pin, awaited } = startWorkers(1);
  for (let i = 0; i < 3; i += 1) ask(0);
  expect(awaited()).toEqual([1]);
  pin();
  expect(awaited()).toEqual([0]);
});

test('the response to a replica states whether it waits for a place', () => {
  const limit = new ReplicaSharedLimit(twoPlaces());
  const accounts = new MemoryAccountStore();
  const serve = (want: number) => {
    const known = { epoch: 0, since: 0, rate: 50, ceiling: 50 };
    const counts = { leasedTokens: want > 0 ? 0 : 2, inFlight: 0, unanswered: 0, want, weight: 1, roundTrip: 1 };
    const call = {
      replicaId: 'a',
      now: 0,
      usage: [],
      ...counts,
      known,
      random: 0.5,
      waitingGroups: [],
      returningGroups: [],
    };
    const { slots, terms } = limit.serve(call, accounts, limit.now(0), false);
    return [slots.length, terms.awaitsPlace];
  };
  expect(serve(3)).toEqual([2, true]);
  expect(serve(0)).toEqual([0, false]);
});

test('a backend knows the rate of the places from the ends that replicas report, however rarely requests end', () => {
  const limit = new ReplicaSharedLimit(twoPlaces(50, 6));
  const accounts = new MemoryAccountStore();
  const log = new UsageLog();
  let inFlight = 0;
  const call = (replicaId: string, now: Millis, want: number) => {
    const own = replicaId === 'slow' ? inFlight : 0;
    const { slots, terms } = limit.serve(
      {
        replicaId,
        now,
        usage: replicaId === 'slow' ? log.take() : [],
        ...{ leasedTokens: 0, inFlight: own, unanswered: own, want, weight: 1, roundTrip: 1, random: 0.5 },
        known: { epoch: 1, since: 0, rate: 50, ceiling: 50 },
        waitingGroups: [],
        returningGroups: [],
      },
      accounts,
      limit.now(now),
      false,
    );
    return { ...terms, granted: slots.length };
  };
  let serial = 0;
  let sentAt: Millis[] = [];
  for (let now = 0; now < 16_500; now += 100) {
    const isDone = now % 3000 === 0;
    if (isDone) {
      for (const at of sentAt) {
        log.accepted(at, (serial += 1), now);
        log.ended(now);
        inFlight -= 1;
      }
      sentAt = [];
    }
    const { granted } = call('slow', now, 20 - inFlight);
    for (let i = 0; i < granted; i += 1) {
      log.sent(serial + i + 1, now);
      sentAt.push(now);
      inFlight += 1;
    }
    call('other', now + 50, 0);
  }
  const { rate, concurrencyLimit, expectedAt, granted } = call('other', 16_500, 1);
  expect(granted).toBe(0);
  expect(Math.abs(rate - (concurrencyLimit ?? 0) / 3)).toBeLessThan(0.3);
  expect(expectedAt - 16_500).toBeLessThan(1000);
});
