import { expect, test } from 'vitest';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { MemoryAccountStore } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaSharedLimit } from '../../../src/sharing/replicas/replica-shared-limit.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import type { LimitUpdates, UsageReport } from '../../../src/sharing/workers/worker-protocol.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const SETTINGS = upstreamSettings();

/** The meter of a limit of two requests in flight. */
function twoPlaces(rate = 50): LocalMeter {
  const meter = new LocalMeter(SETTINGS.rate, () => 0.5);
  meter.resume(rate, rate, 0, 2);
  return meter;
}

/** Workers that share such a limit, and their messages, which arrive when they are passed on. */
function startWorkers(size: number, { rate = 50, stalled = 0 } = {}) {
  let now: Millis = 0;
  const messages: (() => void)[] = [];
  const workers: { readonly client: LimitClient; readonly gate: Gate }[] = [];
  const server: LimitServer = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: () => twoPlaces(rate),
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
    const counts = { leasedTokens: want > 0 ? 0 : 2, inFlight: 0, want, weight: 1, roundTrip: 1 };
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
