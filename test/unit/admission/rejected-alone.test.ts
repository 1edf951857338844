/** Addresses that the upstream always rejects, because of limits of their own, beside one that it always serves. */
import { expect, test } from 'vitest';
import { response, retryPolicy } from '../../support/core/policy-builders.ts';
import { isSuccess } from '../../support/core/call-record.ts';
import { World } from '../../support/core/world.ts';

/** Rejected addresses join after 3 s. Returns the share of requests of the other address that were served from then on. */
function serveBeside(rejected: number, perSecond: number): number {
  const world = new World({ seed: 3 });
  const [from, to] = [3000, 28_000];
  let [asked, served] = [0, 0];
  const ask = (client: string, status: number): void => {
    const queued = world.arrive({ client, addressGroup: client });
    const counts = status === 200 && world.now >= from;
    if (counts) asked += 1;
    const send = (): void => {
      if (queued.admission === undefined) return void world.at(world.now + 5, send);
      if (queued.admission.kind === 'refused') return world.gate.onExchangeEnd(queued.ticket);
      if (counts) served += 1;
      world.send(queued);
      world.at(world.now + 10, () => {
        world.answer(queued, response(status));
        world.gate.onExchangeEnd(queued.ticket);
      });
    };
    send();
  };
  for (let at = 0; at < to; at += 50) world.at(at, () => ask('served', 200));
  for (let i = 0; i < rejected; i += 1) {
    for (let at = from + 137 * i; at < to; at += 1000 / perSecond) world.at(at, () => ask(`rejected-${i}`, 429));
  }
  world.runUntil(to + 15_000);
  return served / asked;
}

test.each([
  [1, 1],
  [1, 5],
  [2, 1],
  [2, 5],
  [3, 1],
  [4, 1],
  [6, 1],
  [3, 2],
])(
  '%i rejected addresses with %i requests a second each leave more than 0.8 to an accepted one',
  (rejected, perSecond) => {
    expect(serveBeside(rejected, perSecond)).toBeGreaterThan(0.8);
  },
);

interface Rejected {
  readonly addresses: number;
  /** Requests a second of each address. */
  readonly perSecond: number;
  readonly attempts: number;
  /** Whether the accepted client stays away for the longest Retry-After of its refused requests. */
  readonly obeys: boolean;
  readonly seed: number;
}

/** A rejection takes less time than a success. Rejected addresses join after 3 s, and ask for the paths of the accepted one. */
function serveWithRetries({ addresses, perSecond, attempts, obeys, seed }: Rejected): number {
  const world = new World({
    seed,
    respond: ({ client }) =>
      client === 'served' ? { outcome: response(200), after: 22 } : { outcome: response(429), after: 3 },
  });
  // A client that obeys may be away for half a minute: each request that was refused at first has a turn of its own.
  const from = 3000;
  const measuredFrom = obeys ? 38_000 : 13_000;
  const to = measuredFrom + 20_000;
  const backOff = {
    name: 'full-jitter',
    next: (retry: number) => ({ delay: 100 * 2 ** retry * world.random(), memory: 0 }),
  };
  const policy = { retry: retryPolicy({ attempts, backOff }) };
  let [asked, served, awayUntil] = [0, 0, 0];
  const ask = (): void => {
    const counts = world.now >= measuredFrom;
    if (counts) asked += 1;
    if (obeys && world.now < awayUntil) return;
    world.call({
      client: 'served',
      addressGroup: 'served',
      path: '/a0',
      policy,
      onVerdict: (record) => {
        if (counts && isSuccess(record)) served += 1;
        const { verdict } = record;
        if (verdict?.kind === 'refuse') awayUntil = Math.max(awayUntil, world.now + (verdict.retryAfterMs ?? 0));
      },
    });
  };
  for (let at = 0; at < to; at += 50) world.at(at, ask);
  for (let i = 0; i < addresses; i += 1) {
    const client = `rejected-${i}`;
    for (let at = from + (1000 / perSecond) * world.random(); at < to; at += 1000 / perSecond) {
      world.at(at, () => void world.call({ client, addressGroup: client, path: `/a${i % 4}`, policy }));
    }
  }
  world.runUntil(to + 15_000);
  return served / asked;
}

test.each(
  [1, 2, 3, 6].flatMap((addresses) =>
    [1, 4].flatMap((attempts) => [true, false].map((obeys) => ({ addresses, attempts, obeys }))),
  ),
)(
  '$addresses rejected addresses with $attempts attempts leave nearly all to an accepted one (obeys: $obeys)',
  (rejected) => {
    for (const perSecond of [1, 5, 10]) {
      for (const seed of [3, 4, 5]) {
        expect(serveWithRetries({ ...rejected, perSecond, seed }), `${perSecond}/s, seed ${seed}`).toBeGreaterThan(0.9);
      }
    }
  },
);
