/** A thousand payments under faults: each is charged at most once, and no charged one is reported as not charged. */
import { expect, onTestFinished, test } from 'vitest';
import type { Random } from '../../../src/core/scalars.ts';
import type { PracticeServer, PracticeOptions } from '../../../src/simulator/practice/practice-server.ts';
import type { KeyLocation, Payment, PaymentAnswer } from '../../support/clients/payment-client.ts';
import { pay, payNow } from '../../support/clients/payment-client.ts';
import type { LinkFaults, Relay } from '../../support/relay/relay.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

const INTENTS = 1000;
const AT_A_TIME = 24;

/** Faults of the upstream itself, before and after the charge. */
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

/** Network faults towards the upstream: a request that breaks off (not charged) or a response that does (charged). */
function spoil(_nth: number, random: Random): LinkFaults {
  const how = random() < 0.5 ? 'cut' : 'reset';
  const after = [0, 4000] as const;
  const u = random();
  if (u < 0.2) return { up: { end: { after, how } } };
  if (u < 0.4) return { down: { end: { after, how } } };
  if (u < 0.45) return { down: { end: { after, how: 'stall' } } };
  if (u < 0.6) return { down: { delay: 40 } };
  return u < 0.7 ? { up: { trickle: { bytes: 100, every: 2 } } } : {};
}

/** Network faults towards the client: one connection in twenty breaks within its response. */
function spoilClients(_nth: number, random: Random): LinkFaults {
  return random() < 0.05 ? { down: { end: { after: [0, 400], how: 'reset' } } } : {};
}

const KEYS: Readonly<Record<KeyLocation, string>> = {
  header: 'ttl: 24h',
  body: 'header: false, jsonField: idempotency_key',
  minted: 'generate: true',
};

async function start(place: KeyLocation) {
  const upstream = await startUpstream(FAULTY);
  const near = await relayOf(upstream.url);
  near.injectFaults(spoil);
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
  clients.injectFaults(spoilClients);
  return { upstream, near, gate, clients };
}

async function relayOf(url: string): Promise<Relay> {
  const relay = await startRelay(url, { seed: 7 });
  onTestFinished(() => relay.close());
  return relay;
}

/** Sends all payments, at most `AT_A_TIME` concurrently. */
async function payAll(url: string, place: KeyLocation): Promise<Payment[]> {
  const payments: Payment[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (next < INTENTS) payments.push(await pay({ url, keyLocation: place, seed: 11 }, next++));
    }),
  );
  return payments;
}

function idsOf({ answers }: Payment): ReadonlySet<string> {
  return new Set(answers.flatMap((each) => (each.kind === 'charged' ? [each.id] : [])));
}

/** Every response of this payment said that nothing was charged. */
function isReportedUncharged({ answers }: Payment): boolean {
  return answers.every(({ kind }) => kind === 'failed');
}

function count(payments: readonly Payment[], kind: PaymentAnswer['kind']): number {
  return payments.flatMap(({ answers }) => answers).filter((each) => each.kind === kind).length;
}

/**
 * Expects that no intent is charged twice, each success has its own charge, no payment reported as uncharged was charged,
 * and no response says "not charged" after one that said "unknown".
 */
function expectHonesty(upstream: PracticeServer, payments: readonly Payment[]): void {
  const { doubleCharges, doubled, mismatches } = upstream.ledger.summary();
  expect([doubleCharges, doubled, mismatches]).toEqual([0, {}, 0]);
  const ids = payments.map(idsOf);
  expect(ids.filter(({ size }) => size > 1)).toEqual([]);
  const all = ids.flatMap((each) => [...each]);
  expect(new Set(all).size).toBe(all.length);
  const lies = payments.filter((payment) => {
    const isCharged = upstream.ledger.isCharged(payment.intent);
    return isReportedUncharged(payment) ? isCharged : idsOf(payment).size > 0 && !isCharged;
  });
  expect(lies).toEqual([]);
  expect(payments.filter(({ contradictions }) => contradictions.length > 0)).toEqual([]);
}

test.each([
  ['in a header', 'header'],
  ['in the body', 'body'],
  ['minted by the proxy', 'minted'],
] as const)(
  'each payment with its key %s is charged at most once and reported truthfully',
  async (_, place) => {
    const { upstream, near, gate, clients } = await start(place);
    const payments = await payAll(clients.url, place);

    // Every kind of fault occurred.
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

    // All pending work has ended, so the ledger is complete.
    near.clearFaults();
    clients.clearFaults();
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

    // Without faults, a payment that has a key is repeated until it is charged, which happens once.
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
