import { spawn } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BYTES_EACH } from '../../../src/cli/check/describe-memory.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { upstreamSettings } from '../../support/core/policy-builders.ts';
import { heldBytes } from '../../support/heap.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const WAITING = 1500;

/** A separate process, so that the clients' memory is not measured: this many connections, a small request on each. */
const CLIENTS = `
const { request } = require('node:http');
for (let i = 0; i < ${WAITING}; i += 1) setTimeout(() => {
  const headers = { 'x-api-key': String(i), authorization: 'Bearer 0123456789012345678901234567890123', 'idempotency-key': String(i) };
  request(process.argv[1], { method: 'POST', agent: false, headers }).on('error', () => {}).end('amount=100&currency=eur');
}, i / 5);
`;

test('uses at most the memory per queued request that check reports, and at least half of it', async () => {
  const origin = await startRecordingUpstream();
  const gate = await startTidegate(`
log: {level: silent}
upstreams: {api: {url: "${origin.url}", timeout: 1h, rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 1h}}}
clients: {key: ["header:x-api-key"]}
`);
  const queued = () => gate.view().limits[0]?.queued ?? 0;
  await send(gate.url, '/');
  const before = heldBytes();
  const clients = spawn(process.execPath, ['-e', CLIENTS, gate.url]);
  onTestFinished(() => void clients.kill());
  // All of them: a connection whose request is not queued yet would be counted too.
  await eventually(
    () => queued() + origin.received.length,
    (come) => come === WAITING + 1,
  );
  expect(queued()).toBeGreaterThan(0.8 * WAITING);
  const each = (heldBytes() - before) / queued();
  expect(each).toBeLessThan(BYTES_EACH.request);
  expect(each).toBeGreaterThan(BYTES_EACH.request / 2);
});

describe('the memory figures are measured: reported at no less, and at most twice the actual use', () => {
  const COUNT = 30_000;
  const random = seededRandom(1);
  const hash = () => Math.floor(random() * 2 ** 52).toString(16);

  test('a client', () => {
    const before = heldBytes();
    const table = new ClientTable(COUNT, () => undefined);
    for (let i = 0; i < COUNT; i += 1) table.leave(table.enter(`api\0${hash()}`, i));
    const each = (heldBytes() - before) / COUNT;
    expect(table.view(0).tracked).toBe(COUNT);
    expect(each).toBeLessThan(BYTES_EACH.client);
    expect(each).toBeGreaterThan(BYTES_EACH.client / 2);
  });

  test('a per-client limit', () => {
    const count = COUNT / 2;
    const before = heldBytes();
    const upstreams = [upstreamSettings({ scope: 'client' })];
    const store = new MemoryStore({ upstreams, maxTracked: COUNT, random, listen: () => undefined });
    for (let i = 0; i < count; i += 1) {
      const { meter } = store.findOrCreateLimit({ upstream: 'up', nested: '', scope: 'client', key: hash() });
      meter.onAccepted(i, meter.onSent(i), i + 1); // includes what is allocated on first use
    }
    const each = (heldBytes() - before) / count;
    expect([...store.limits()]).toHaveLength(count);
    expect(each).toBeLessThan(BYTES_EACH.limit);
    expect(each).toBeGreaterThan(BYTES_EACH.limit / 2);
  });
});
