/** Connections that take longer to open than one attempt may last. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { DnsLookup } from '../../../src/http/upstream/dns-resolver.ts';
import { sha256 } from '../../support/upstreams/http-upstream.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

/** Names resolve when the test calls `held`. */
function heldLookup() {
  const held: (() => void)[] = [];
  const lookup: DnsLookup = (_, done) => void held.push(() => done(null, [{ address: '127.0.0.1', family: 4 }]));
  return { lookup, held };
}

async function start(more: string) {
  const origin = await startRecordingUpstream();
  const { lookup, held } = heldLookup();
  const gate = await startTidegate(
    `
upstreams:
  api:
    url: "${origin.url.replace('127.0.0.1', 'api.example')}"
    perTryTimeout: 250ms
    retry: {attempts: 4, backOff: {strategy: fixed, baseInterval: 10ms}}
    ${more}
`,
    { lookup },
  );
  const tries = (count: number) =>
    eventually(
      () => gate.metric('tidegate_retries_total{upstream="api",reason="connect"}'),
      (retries) => retries >= count,
    );
  return { origin, gate, held, tries };
}

test.each([1, 4])(
  'uses a connection that opens late for a later attempt, with at most %i connections',
  async (connections) => {
    const { origin, gate, held, tries } = await start(`connections: ${connections}`);
    const answer = send(gate.url, '/', { method: 'POST', body: 'x' });
    await tries(2);
    expect(held).toHaveLength(1); // all attempts share one lookup
    for (const find of held) find();
    const { status, header } = await answer;
    expect([status, Number(header('tidegate-attempts'))]).toEqual([
      200,
      expect.toSatisfy((count: number) => count >= 3),
    ]);
    expect(origin.received).toHaveLength(1);
    expect(origin.connections()).toBeLessThanOrEqual(connections);
  },
);

test.each([true, false])(
  'sends none of an upload on a late connection when another attempt sends it, chunked: %s',
  async (chunked) => {
    const { origin, gate, held, tries } = await start('connections: 4');
    const body = randomBytes(1024 * 1024);
    const answer = send(gate.url, '/', { method: 'POST', chunked, body });
    await tries(1);
    for (const find of held) find();
    expect((await answer).status).toBe(200);
    expect(origin.received.map((received) => sha256(received.body))).toEqual([sha256(body)]);
  },
);

test('counts a failure to connect against the upstream, with however few connections', async () => {
  const { gate } = await start('connections: 1');
  const state = await eventually(
    async () => {
      await Promise.all([send(gate.url, '/'), send(gate.url, '/')]);
      return gate.view().limits[0]?.state;
    },
    (is) => is === 'blocked',
  );
  expect(state).toBe('blocked');
});
