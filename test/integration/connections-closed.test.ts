/** Upstreams that close connections just as a request goes out on them: what is safe goes on, and nothing is done twice. */
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { ClosingUpstream, Habits } from '../support/closing-upstream.ts';
import { startClosingUpstream } from '../support/closing-upstream.ts';
import { pause } from '../support/pause.ts';
import type { Received } from '../support/send.ts';
import { keepAlive, send } from '../support/send.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { startTidegate } from '../support/tidegate.ts';

const KINDS = ['GET', 'POST', 'keyed POST', 'PUT'] as const;

interface Told {
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

/** Twelve clients, each of which sends one request after the other, with a pause between them. */
async function sendAll(gate: Tidegate, times: number, between: () => number): Promise<Told[]> {
  const agent = keepAlive();
  const told: Told[] = [];
  await Promise.all(
    Array.from({ length: 12 }, async (_, client) => {
      for (let i = 0; i < times; i += 1) {
        const kind = KINDS[(client + i) % KINDS.length] ?? 'GET';
        const id = `${client}-${i}`;
        const headers = ['X-Api-Key', `client-${client}`, 'X-Id', id];
        if (kind === 'keyed POST') headers.push('Idempotency-Key', id);
        const method = kind === 'keyed POST' ? 'POST' : kind;
        const body = kind === 'GET' ? {} : { body: 'amount=1' };
        told.push({ kind, id, answer: await send(gate.url, '/', { method, headers, agent, ...body }) });
        await pause(between());
      }
    }),
  );
  return told;
}

/** Holds every answer against what the upstream has done. Returns how many writes were told as unknown. */
function audit(told: readonly Told[], { ledger }: ClosingUpstream): number {
  let unknown = 0;
  for (const { kind, id, answer } of told) {
    const done = ledger.get(id) ?? 0;
    const isUnknown = answer.header('tidegate-outcome') === 'unknown';
    if (isUnknown) unknown += 1;
    // Only an unkeyed write may come to nothing, and then it says so.
    expect([kind, id, answer.status]).toEqual([kind, id, kind === 'POST' && isUnknown ? 504 : 200]);
    if (!isUnknown) expect([id, answer.body.toString(), done > 0]).toEqual([id, id, true]);
    if (kind === 'POST') expect([id, done]).toEqual([id, expect.toSatisfy((times: number) => times <= 1)]);
  }
  return unknown;
}

const retries = 'tidegate_retries_total{upstream="api",reason="reset"}';
const random = seededRandom(5);

describe('connections closed by the upstream', () => {
  test('when they have been idle, just as clients come back', async () => {
    const { gate, upstream } = await start({ idle: 40 });
    const told = await sendAll(gate, 40, () => 34 + 12 * random());
    audit(told, upstream);
    expect(upstream.closedIdle()).toBeGreaterThan(10);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });

  test.each([true, false])('after three answers, announced: %s', async (announced) => {
    const { gate, upstream } = await start({ after: { answers: 3, announced } });
    const told = await sendAll(gate, 40, () => 6 * random());
    expect(audit(told, upstream)).toBeLessThan(announced ? 1 : told.length / 20);
    expect(upstream.connections()).toBeGreaterThanOrEqual(told.length / 3);
  });

  test('as every fourth request arrives, before anything is done', async () => {
    const { gate, upstream } = await start({ atRequest: (n) => n === 4 });
    const told = await sendAll(gate, 40, () => 10 * random());
    const unknown = audit(told, upstream);
    expect(upstream.cutOff()).toBeGreaterThan(50);
    // Each was either retried, for free, or told as unknown.
    expect((await gate.metric(retries)) + unknown).toBe(upstream.cutOff());
    expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBe(1);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });

  test('are not used again once it is known for how long they are kept', async () => {
    const { gate, upstream } = await start({ idle: 300 });
    const pay = (id: string) => send(gate.url, '/', { method: 'POST', headers: ['X-Id', id], body: 'amount=1' });
    await Promise.all(['x', 'y', 'z'].map(pay));
    await pause(450);
    expect(upstream.closedIdle()).toBe(3);
    const told: Told[] = [];
    for (let i = 0; i < 8; i += 1) {
      told.push({ kind: 'POST', id: `${i}`, answer: await pay(`${i}`) });
      await pause(250 + 60 * random());
    }
    expect(audit(told, upstream)).toBe(0);
    expect(upstream.connections()).toBe(3 + told.length);
    // A pause that is short is no risk.
    for (let i = 0; i < 10; i += 1) await pay(`busy-${i}`);
    expect(upstream.connections()).toBeLessThanOrEqual(3 + told.length + 2);
  });
});

test('a connection that breaks while a request is at work says something of the upstream, and is charged for', async () => {
  const { gate, upstream } = await start({ atRequest: (n) => n === 1 });
  const answer = await send(gate.url, '/', { headers: ['X-Id', 'first'] });
  expect([answer.status, answer.header('tidegate-attempts')]).toEqual([502, '4']);
  expect(upstream.cutOff()).toBe(4);
  expect(await gate.metric('tidegate_retry_budget_available_ratio{upstream="api"}')).toBeLessThan(0.8);
});
