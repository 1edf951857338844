/** Upstreams that close connections just as a request is sent: safe requests are retried, nothing runs twice. */
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { ClosingUpstream, Habits } from '../../support/upstreams/closing-upstream.ts';
import { startClosingUpstream } from '../../support/upstreams/closing-upstream.ts';
import { pause } from '../../support/pause.ts';
import type { Received } from '../../support/clients/send.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const KINDS = ['GET', 'POST', 'keyed POST', 'PUT'] as const;

interface SentRequest {
  readonly kind: (typeof KINDS)[number];
  readonly id: string;
  readonly answer: Received;
}

async function start(habits: Habits): Promise<{ gate: Tidegate; upstream: ClosingUpstream }> {
  const upstream = await startClosingUpstream(habits);
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", connections: 30}}
clients: {key: ["header:x-api-key"]}
`);
  return { gate, upstream };
}

/** Twelve clients that send requests one after another, with pauses between them. */
async function sendAll(gate: Tidegate, times: number, between: () => number): Promise<SentRequest[]> {
  const agent = keepAlive();
  const results: SentRequest[] = [];
  await Promise.all(
    Array.from({ length: 12 }, async (_, client) => {
      for (let i = 0; i < times; i += 1) {
        const kind = KINDS[(client + i) % KINDS.length] ?? 'GET';
        const id = `${client}-${i}`;
        const headers = ['X-Api-Key', `client-${client}`, 'X-Id', id];
        if (kind === 'keyed POST') headers.push('Idempotency-Key', id);
        const method = kind === 'keyed POST' ? 'POST' : kind;
        const body = kind === 'GET' ? {} : { body: 'amount=1' };
        results.push({ kind, id, answer: await send(gate.url, '/', { method, headers, agent, ...body }) });
        await pause(between());
      }
    }),
  );
  return results;
}

/** Compares every response with the upstream's ledger. Returns how many writes were reported as unknown. */
function audit(results: readonly SentRequest[], { ledger }: ClosingUpstream): number {
  let unknown = 0;
  for (const { kind, id, answer } of results) {
    const done = ledger.get(id) ?? 0;
    const isUnknown = answer.header('tidegate-outcome') === 'unknown';
    if (isUnknown) unknown += 1;
    // Only an unkeyed write may fail, and then as unknown.
    expect([kind, id, answer.status]).toEqual([kind, id, kind === 'POST' && isUnknown ? 504 : 200]);
    if (!isUnknown) expect([id, answer.body.toString(), done > 0]).toEqual([id, id, true]);
    if (kind === 'POST') expect([id, done]).toEqual([id, expect.toSatisfy((times: number) => times <= 1)]);
  }
  return unknown;
}

const retries = 'tidegate_retries_total{upstream="api",reason="reset"}';
const random = seededRandom(5);

describe('connections closed by the upstream', () => {
  test('cost no request when they close after idling, just as clients return', async () => {
    const { gate, upstream } = await start({ idle: 40 });
    const results = await sendAll(gate, 40, () => 34 + 12 * random());
    audit(results, upstream);
    expect(upstream.closedIdle()).toBeGreaterThan(10);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });

  test.each([true, false])(
    'cost no request when they close after three responses, announced: %s',
    async (announced) => {
      const { gate, upstream } = await start({ after: { answers: 3, announced } });
      const results = await sendAll(gate, 40, () => 6 * random());
      expect(audit(results, upstream)).toBeLessThan(announced ? 1 : results.length / 20);
      expect(upstream.connections()).toBeGreaterThanOrEqual(results.length / 3);
    },
  );

  test('cause only free retries and unknown outcomes when every fourth request closes one', async () => {
    const { gate, upstream } = await start({ atRequest: (n) => n === 4 });
    const results = await sendAll(gate, 40, () => 10 * random());
    const unknown = audit(results, upstream);
    expect(upstream.cutOff()).toBeGreaterThan(50);
    // Each was either retried for free or reported as unknown.
    expect((await gate.metric(retries)) + unknown).toBe(upstream.cutOff());
    expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBe(1);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });

  test('are not reused once their keep-alive time is known', async () => {
    const { gate, upstream } = await start({ idle: 300 });
    const pay = (id: string) => send(gate.url, '/', { method: 'POST', headers: ['X-Id', id], body: 'amount=1' });
    await Promise.all(['x', 'y', 'z'].map(pay));
    await pause(450);
    expect(upstream.closedIdle()).toBe(3);
    const results: SentRequest[] = [];
    for (let i = 0; i < 8; i += 1) {
      results.push({ kind: 'POST', id: `${i}`, answer: await pay(`${i}`) });
      await pause(250 + 60 * random());
    }
    expect(audit(results, upstream)).toBe(0);
    expect(upstream.connections()).toBe(3 + results.length);
    // A short pause is no risk.
    for (let i = 0; i < 10; i += 1) await pay(`busy-${i}`);
    expect(upstream.connections()).toBeLessThanOrEqual(3 + results.length + 2);
  });
});

test('charges the retry budget when a connection breaks while a request is being processed', async () => {
  const { gate, upstream } = await start({ atRequest: (n) => n === 1 });
  const answer = await send(gate.url, '/', { headers: ['X-Id', 'first'] });
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([502, '4']);
  expect(upstream.cutOff()).toBe(4);
  expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBeLessThan(0.8);
});
