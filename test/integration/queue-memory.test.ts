import { spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { KEPT } from '../../src/cli/check/describe-memory.ts';
import { heldBytes } from '../support/heap.ts';
import { startOrigin } from '../support/origin.ts';
import { send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

const WAITING = 1500;

/** A process of its own, so that what clients keep is not counted: so many connections, a request with a small body on each. */
const CLIENTS = `
const { request } = require('node:http');
for (let i = 0; i < ${WAITING}; i += 1) setTimeout(() => {
  const headers = { 'x-api-key': String(i), authorization: 'Bearer 0123456789012345678901234567890123', 'idempotency-key': String(i) };
  request(process.argv[1], { method: 'POST', agent: false, headers }).on('error', () => {}).end('amount=100&currency=eur');
}, i / 5);
`;

test('a request that waits keeps no more memory than check says, and no less than half of it', async () => {
  const origin = await startOrigin();
  const gate = await startTidegate(`
log: {level: silent}
upstreams: {api: {url: "${origin.url}", timeout: 1h, rateLimit: {initialRate: 5/s, maxRate: 5/s}, queue: {maxWait: 1h}}}
clients: {key: ["header:x-api-key"]}
`);
  const queued = () => gate.view().limits[0]?.queued ?? 0;
  await send(gate.url, '/');
  const before = heldBytes();
  const clients = spawn(process.execPath, ['-e', CLIENTS, gate.url]);
  onTestFinished(() => void clients.kill());
  // All: of one that has come and does not wait yet, its connection would be counted to those that do.
  await eventually(
    () => queued() + origin.received.length,
    (come) => come === WAITING + 1,
    20_000,
  );
  expect(queued()).toBeGreaterThan(0.8 * WAITING);
  const each = (heldBytes() - before) / queued();
  expect(each).toBeLessThan(KEPT.request);
  expect(each).toBeGreaterThan(KEPT.request / 2);
}, 30_000);
