/** The status names the client that most refusals concern, and so does the log. */
import { expect, test } from 'vitest';
import type { ClientsPage, ProcessStatus, RequestsPage } from '../../../src/admin/api/response-schemas.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const CLIENTS = 'clients: {key: [header:x-api-key, ip], names: {batch: [batch-*], shop: [shop]}}\n';

async function read<T>(adminUrl: string | undefined, path: string): Promise<T> {
  return (await (await fetch(`${adminUrl}${path}`)).json()) as T;
}

async function mostRefused(adminUrl: string | undefined): Promise<ProcessStatus['upstreams'][number]['mostRefused']> {
  const { upstreams } = await read<ProcessStatus>(adminUrl, '/api/status');
  return upstreams[0]?.mostRefused ?? null;
}

/** Sends twenty requests of one client, and one of another. */
async function flood(url: string): Promise<void> {
  const request = (key: string) => send(url, '/', { headers: ['X-Api-Key', key] });
  await Promise.all([request('shop'), ...Array.from({ length: 20 }, () => request('batch-7'))]);
}

test('the status names the client that floods, with its demand and its share', async () => {
  const upstream = await startUpstream({ limit: { kind: 'token-bucket', rate: 5, burst: 5 } });
  const gate = await startTidegate(
    `${CLIENTS}upstreams: {pay: {url: "${upstream.url}", queue: {maxWait: 100ms}, retry: {attempts: 1}}}`,
  );
  const most = await eventually(
    async () => {
      await flood(gate.url);
      return mostRefused(gate.adminUrl);
    },
    (found) => (found?.sharePerSecond ?? null) !== null,
  );
  expect(most).toMatchObject({ name: 'batch', heldUntil: null });
  expect(most?.shareOfRefusals).toBeGreaterThan(0.5);
  expect(most?.demandPerSecond).toBeGreaterThan(0);
  const { clients } = await read<ClientsPage>(gate.adminUrl, '/api/clients?search=bat');
  expect(clients.map(({ name }) => name)).toEqual(['batch']);
  expect(clients[0]?.key).toBe(most?.key);
  const { requests } = await read<RequestsPage>(gate.adminUrl, `/api/requests?client=${most?.key}`);
  expect(new Set(requests.map(({ clientName }) => clientName))).toEqual(new Set(['batch']));
  const lines = gate.log().filter(({ msg, client }) => msg === 'request' && client === most?.key);
  expect(new Set(lines.map(({ clientName }) => clientName))).toEqual(new Set(['batch']));
});

test('the status of several workers names the client that the upstream holds', async () => {
  const upstream = await startHttpUpstream((_, response, { headers }) => {
    const isHeld = headers.includes('batch-7');
    response.writeHead(isHeld ? 429 : 200, isHeld ? { 'Retry-After': '60' } : {}).end();
  });
  const workers = await startWorkers(
    `workers: 2\n${CLIENTS}upstreams: {pay: {url: "${upstream.url}", retry: {attempts: 1}}}`,
  );
  const most = await eventually(
    async () => {
      await flood(workers.url);
      return mostRefused(workers.adminUrl);
    },
    (found) => (found?.heldUntil ?? null) !== null,
  );
  expect(most).toMatchObject({ name: 'batch', shareOfRefusals: 1 });
});
