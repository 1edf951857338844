/** Several endpoints, each with a limit of its own: the one that rejects is left alone for its Retry-After. */
import { describe, expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import type { SwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import { startSwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const hostOf = ({ url }: SwitchableUpstream): string => new URL(url).host;

async function start(more = ''): Promise<{ gate: Tidegate; limited: SwitchableUpstream; other: SwitchableUpstream }> {
  const limited = await startSwitchableUpstream();
  const other = await startSwitchableUpstream();
  const gate = await startTidegate(`
upstreams:
  api:
    urls: ["${limited.url}", "${other.url}"]
    outlierDetection: {maxEjectionTime: 1h}
    ${more}
`);
  return { gate, limited, other };
}

const reject =
  (status: number, retryAfter: string): Parameters<SwitchableUpstream['answer']>[0] =>
  (_, response) =>
    void response.writeHead(status, { 'Retry-After': retryAfter }).end();

describe.each([429, 503])('an endpoint that responds %i with Retry-After', (status) => {
  test('gets no more requests, while the other takes over at once and at full rate', async () => {
    const { gate, limited, other } = await start();
    limited.answer(reject(status, '30'));
    for (let i = 0; i < 10; i += 1) expect((await send(gate.url, `/${i}`)).status).toBe(200);
    expect([limited.hits().length, other.hits().length]).toEqual([1, 10]);
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
    expect(await gate.metric(`tidegate_endpoint_healthy{upstream="api",endpoint="${hostOf(limited)}"}`)).toBe(0);
    const ejected = gate.log().find(({ msg }) => msg === 'endpoint ejected');
    expect(ejected).toMatchObject({ level: 'warn', endpoint: hostOf(limited), cause: 'throttled' });
    expect(ejected?.['forMs']).toBeGreaterThanOrEqual(30_000);
    expect(ejected?.['forMs']).toBeLessThanOrEqual(36_000);
    expect(gate.requests()[0]).toMatchObject({ status: 200, attempts: 2, endpoint: hostOf(other) });
  });

  test('appears in the explanation of its request', async () => {
    const { gate, limited } = await start();
    limited.answer(reject(status, '30'));
    await send(gate.url, '/');
    const [request] = gate.requests();
    const headers = { accept: 'text/plain' };
    const text = await (await fetch(`${gate.adminUrl}/explain/${String(request?.['id'])}`, { headers })).text();
    expect(text.replaceAll(/\s+/g, ' ')).toContain('the endpoint is ejected until then, and another takes over');
    expect(text).toContain('retry at once');
    expect(text.replaceAll(/\s+/g, ' ')).toContain('at another endpoint: this one asked for a wait');
  });
});

describe('an endpoint with a limit of its own', () => {
  test('is re-admitted by a trial after its Retry-After', async () => {
    const { gate, limited } = await start();
    limited.answer(reject(429, '1'));
    await send(gate.url, '/');
    limited.answer((_, response) => void response.end('fine'));
    await eventually(
      () => send(gate.url, '/').then(() => gate.log().find(({ msg }) => msg === 'endpoint re-admitted')),
      (line) => line?.['cause'] === 'trial',
    );
    expect(limited.hits().length).toBeGreaterThanOrEqual(2);
  });

  test('gets a write again only if nothing rules out another endpoint: a POST without a key gets the 429', async () => {
    const { gate, limited, other } = await start();
    limited.answer(reject(429, '30'));
    const { status, header } = await send(gate.url, '/', { method: 'POST', body: 'x' });
    expect([status, header('retry-after')]).toEqual([429, '30']);
    expect([limited.hits(), other.hits()]).toEqual([['POST'], []]);
    expect((await send(gate.url, '/', { method: 'POST', body: 'x' })).status).toBe(200);
    expect(other.hits()).toEqual(['POST']);
  });

  test('leaves the limit to the upstream if the other rejects the same requests', async () => {
    const { gate, limited, other } = await start('retry: {attempts: 2}');
    for (const each of [limited, other]) each.answer(reject(429, '30'));
    const { status, header } = await send(gate.url, '/');
    expect([status, header('retry-after')]).toEqual([429, '30']);
    expect(gate.view().limits).not.toMatchObject([{ state: 'open' }]);
    expect((await send(gate.url, '/')).status).toBe(429); // this client is held
    expect([limited.hits().length, other.hits().length]).toEqual([1, 1]);
  });
});

test('a 429 counts against the upstream with a provider, whose limits are those of the account', async () => {
  const { gate, limited } = await start('provider: mollie');
  limited.answer(reject(429, '30'));
  expect((await send(gate.url, '/')).status).toBe(429);
  expect(gate.view().limits).not.toMatchObject([{ state: 'open' }]);
  expect(await gate.metric(`tidegate_endpoint_healthy{upstream="api",endpoint="${hostOf(limited)}"}`)).toBe(1);
});
