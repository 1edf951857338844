/** A thousand intents to pay, each to be charged at most once, and nobody to be told that nothing happened when it did. */
import { expect, onTestFinished, test } from 'vitest';
import type { Random } from '../../src/core/exchange/attempt-outcome.ts';
import type { Practice, PracticeOptions } from '../../src/simulator/practice/practice-server.ts';
import type { KeyPlace, Payment, Told } from '../support/payer.ts';
import { pay, payNow } from '../support/payer.ts';
import type { Faults, Relay } from '../support/relay.ts';
import { startRelay } from '../support/relay.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

const INTENTS = 1000;
const AT_A_TIME = 24;

/** What goes wrong at the upstream itself, before and after the charge. */
const FAULTY = {
  limit: { kind: 'token-bucket', rate: 250, burst: 10 },
  latency: { kind: 'lognormal', mean: 8, sigma: 1 },
  errors: [
    { probability: 0.05, status: 500 },
    { probability: 0.05, status: 503 },
  ],
  afterCharge: { reset: 0.05, hang: 0.03, error: 0.05 },
  seed: 20_261_122,
} satisfies PracticeOptions;

const HEALTHY = {
  limit: { kind: 'unlimited' },
  latency: { kind: 'constant', mean: 0 },
  errors: [],
  afterCharge: {},
} as const;

/** What goes wrong on the way there: before the charge, where its request breaks off, and after it, where its answer does. */
function spoil(_nth: number, random: Random): Faults {
  const how = random() < 0.5 ? 'cut' : 'reset';
  const after = [0, 4000] as const;
  const u = random();
  if (u < 0.2) return { up: { end: { after, how } } };
  if (u < 0.4) return { down: { end: { after, how } } };
  if (u < 0.45) return { down: { end: { after, how: 'stall' } } };
  if (u < 0.6) return { down: { delay: 40 } };
  return u < 0.7 ? { up: { trickle: { bytes: 100, every: 2 } } } : {};
}

/** On the way from the client, one connection in twenty breaks somewhere in its answer. */
function spoilClients(_nth: number, random: Random): Faults {
  return random() < 0.05 ? { down: { end: { after: [0, 400], how: 'reset' } } } : {};
}

const KEYS: Readonly<Record<KeyPlace, string>> = {
  header: 'ttl: 24h',
  body: 'header: false, jsonField: idempotency_key',
  minted: 'generate: true',
};

async function start(place: KeyPlace) {
  const upstream = await startUpstream(FAULTY);
  const near = await relayOf(upstream.url);
  near.spoil(spoil);
  const gate = await startTidegate(`
upstreams:
  pay:
    url: ${near.url}
    timeout: 3s
    perTryTimeout: 250ms
    streamIdle: 500ms
    rateLimit: {minRate: 500/s}
    idempotency: {${KEYS[place]}}
    retry: {attempts: 2, budget: {ratio: 1, burst: 200}, backOff: {strategy: full-jitter, baseInterval: 10ms}}
`);
  const clients = await relayOf(gate.url);
  clients.spoil(spoilClients);
  return { upstream, near, gate, clients };
}

async function relayOf(url: string): Promise<Relay> {
  const relay = await startRelay(url, { seed: 7 });
  onTestFinished(() => relay.close());
  return relay;
}

/** So many at a time, each after the one before it. */
async function payAll(url: string, place: KeyPlace): Promise<Payment[]> {
  const payments: Payment[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (next < INTENTS) payments.push(await pay({ url, place, seed: 11 }, next++));
    }),
  );
  return payments;
}

function idsOf({ told }: Payment): ReadonlySet<string> {
  return new Set(told.flatMap((each) => (each.kind === 'charged' ? [each.id] : [])));
}

/** Each of its requests was told that nothing has come of it. */
function isToldNothingHappened({ told }: Payment): boolean {
  return told.every(({ kind }) => kind === 'failed');
}

function count(payments: readonly Payment[], kind: Told['kind']): number {
  return payments.flatMap(({ told }) => told).filter((each) => each.kind === kind).length;
}

/**
 * No intent twice; each success is a charge of its own; no charge where each answer said that there was none; and no answer
 * that says so after one that said that nobody knows.
 */
function expectHonesty(upstream: Practice, payments: readonly Payment[]): void {
  const { doubleCharges, doubled, mismatches } = upstream.ledger.summary();
  expect([doubleCharges, doubled, mismatches]).toEqual([0, {}, 0]);
  const ids = payments.map(idsOf);
  expect(ids.filter(({ size }) => size > 1)).toEqual([]);
  const all = ids.flatMap((each) => [...each]);
  expect(new Set(all).size).toBe(all.length);
  const lies = payments.filter((payment) => {
    const isCharged = upstream.ledger.isCharged(payment.intent);
    return isToldNothingHappened(payment) ? isCharged : idsOf(payment).size > 0 && !isCharged;
  });
  expect(lies).toEqual([]);
  expect(payments.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
}

test.each([
  ['in a header', 'header'],
  ['in the body', 'body'],
  ['minted by the proxy', 'minted'],
] as const)(
  'with its key %s, each is charged once at most, and told the truth',
  async (_, place) => {
    const { upstream, near, gate, clients } = await start(place);
    const payments = await payAll(clients.url, place);

    // All that can go wrong did.
    const { answered } = upstream.stats();
    for (const fault of ['reset', 'hang', 500, 503, 429]) expect(Object.keys(answered)).toContain(String(fault));
    expect(near.taken).toBeGreaterThan(100);
    for (const kind of ['nothing', 'unknown', 'failed', 'charged'] as const) {
      expect({ kind, times: count(payments, kind) }).not.toEqual({ kind, times: 0 });
    }
    const awaited = await gate.metric('tidegate_idempotency_keys_total{upstream="pay",event="awaited"}');
    expect(awaited).toBeGreaterThan(place === 'minted' ? -1 : 10);
    const recovered = gate.requests().filter(({ outcome }) => outcome === 'recovered').length;
    expect(recovered).toBeGreaterThan(50);
    expect(payments.filter((payment) => idsOf(payment).size === 1).length).toBeGreaterThan(INTENTS / 2);

    // What was begun has ended: whatever came of it is in the ledger.
    near.heal();
    clients.heal();
    await eventually(
      () => gate.metric('tidegate_requests_in_flight{route="/"}'),
      (requests) => requests === 0,
    );
    upstream.configure(HEALTHY);
    await eventually(
      () => upstream.stats().inFlight,
      (requests) => requests === 0,
    );
    expectHonesty(upstream, payments);

    // All is well again: whoever has a key asks until it is charged, and that is once.
    const open = payments.filter((payment) => idsOf(payment).size === 0 && payment.key !== undefined);
    for (const payment of open) {
      await eventually(
        () => payNow(gate.url, place, payment),
        ({ kind }) => kind === 'charged',
      );
    }
    expectHonesty(upstream, payments);
    const asked = payments.filter(({ key }) => key !== undefined);
    expect(asked.every(({ intent }) => upstream.ledger.isCharged(intent))).toBe(true);
    if (place !== 'minted') expect(upstream.ledger.charges).toBe(INTENTS);
  },
  120_000,
);
