import { describe, expect, test } from 'vitest';
import { send } from '../support/send.ts';
import { eventually, startTidegate, startUpstream } from '../support/tidegate.ts';

/** The hashed clients of these requests, in order, as the log tells them. */
async function clientsOf(clients: string, requests: { target?: string; headers?: string[] }[]): Promise<string[]> {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\nclients: {${clients}}`);
  for (const { target = '/', headers = [] } of requests) await send(gate.url, target, { headers });
  const lines = await eventually(gate.requests, ({ length }) => length === requests.length);
  return lines.map(({ client }) => String(client));
}

describe('what metrics call a client', () => {
  test('is its name in the configuration, by its key or its address; of all others nothing is told', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
clients: {key: ["header:x-api-key", ip], names: {shop: [shop-*, mart], both: [shop-1], here: ["127.0.0.*"]}}
`);
    for (const key of ['shop-1', 'shop-2', 'mart', 'marten', 'stranger-key']) {
      await send(gate.url, '/', { headers: ['X-Api-Key', key] });
    }
    await send(gate.url, '/');
    await eventually(gate.requests, ({ length }) => length === 6);
    const text = await (await fetch(`${gate.adminUrl}/metrics`)).text();
    expect(text.match(/^tidegate_client_requests_total.* [1-9]\d*$/gm)).toEqual([
      'tidegate_client_requests_total{client="shop",outcome="forwarded"} 3',
      'tidegate_client_requests_total{client="here",outcome="forwarded"} 1',
    ]);
    for (const key of ['shop-1', 'mart', 'stranger-key']) expect(text).not.toContain(key);
  });
});

describe('who a client is', () => {
  test('says the first header that is there', async () => {
    const [a, again, b, byBearer, byAddress, empty] = await clientsOf('key: ["header:X-Api-Key", bearer, ip]', [
      { headers: ['x-api-key', 'a'] },
      { headers: ['X-API-KEY', 'a', 'Authorization', 'Bearer t'] },
      { headers: ['X-Api-Key', 'b'] },
      { headers: ['Authorization', 'Bearer t'] },
      {},
      { headers: ['X-Api-Key', ''] },
    ]);
    expect(a).toBe(again);
    expect(new Set([a, b, byBearer, byAddress]).size).toBe(4);
    expect(empty).toBe(byAddress);
    for (const client of [a, b, byBearer, byAddress]) expect(client).toMatch(/^[0-9a-f]{16}$/);
  });

  test('says a segment of its path', async () => {
    const [a, again, b] = await clientsOf('key: ["path:2"]', [
      { target: '/tenants/a/x' },
      { target: '/tenants/a?b' },
      { target: '/tenants/b' },
    ]);
    expect(a).toBe(again);
    expect(a).not.toBe(b);
  });

  test('a segment of a path that says it is in no line of the log, whatever becomes of the request', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
routes: [{path: /tenants, upstream: api}]
clients: {key: ["header:x-user", "path:2"]}
`);
    await send(gate.url, '/tenants/acme/charges?x=1');
    await send(gate.url, '/tenants/acme/charges', { headers: ['X-User', 'u'] });
    await send(gate.url, '/nowhere/acme');
    await send(gate.url, '/tenants/acme/../x');
    const lines = await eventually(gate.requests, ({ length }) => length === 4);
    expect(lines.map(({ path }) => path)).toEqual([
      '/tenants/*/charges',
      '/tenants/*/charges',
      '/nowhere/*',
      '/tenants/*/../x',
    ]);
    expect(JSON.stringify(gate.log())).not.toContain('acme');
  });

  test('is not said twice: of two headers the upstream may believe the other one', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {credentialHeader: X-Account}}, other: {url: "${upstream.url}"}}
routes: [{path: /, upstream: api}, {path: /other, upstream: other}]
clients: {key: ["header:X-Api-Key", bearer, ip]}
`);
    const ask = async (name: string, target = '/echo') => {
      const answer = await send(gate.url, target, { headers: [name, 'decoy', name.toUpperCase(), 'real'] });
      return answer.status;
    };
    for (const name of ['X-Api-Key', 'Authorization', 'X-Account']) {
      expect([name, await ask(name)]).toEqual([name, 400]);
    }
    expect(await ask('X-Other')).toBe(200);
    expect(await ask('X-Account', '/other')).toBe(200);
    const refused = await eventually(
      () => gate.requests().filter(({ reason }) => reason === 'bad_request'),
      ({ length }) => length === 3,
    );
    expect(refused.map(({ client }) => client)).toEqual([undefined, undefined, undefined]);
  });

  test('a header of one name is not mistaken for that of another', async () => {
    const [byKey, byUser] = await clientsOf('key: ["header:x-api-key", "header:x-user"]', [
      { headers: ['X-Api-Key', 'same'] },
      { headers: ['X-User', 'same'] },
    ]);
    expect(byKey).not.toBe(byUser);
  });
});

describe('the address of a client', () => {
  const from = (...forwarded: string[]) => ({ headers: forwarded.flatMap((each) => ['X-Forwarded-For', each]) });

  test('is that of the connection, whatever a stranger says', async () => {
    const [plain, liar] = await clientsOf('key: [ip]', [{}, from('203.0.113.7')]);
    expect(liar).toBe(plain);
  });

  test('is the last one that no trusted proxy added', async () => {
    const clients = await clientsOf('key: [ip], trustedProxies: [127.0.0.0/8, 10.0.0.0/8, "fd00::/8"]', [
      from('203.0.113.7'),
      from('6.6.6.6, 203.0.113.7, 10.1.2.3'), // what the client wrote itself stays unread
      from('6.6.6.6', '203.0.113.7', 'fd00::1'),
      from('203.0.113.7:4711'),
      from('203.0.113.8'),
      from(''),
    ]);
    expect(new Set(clients.slice(0, 4)).size).toBe(1);
    expect(clients[4]).not.toBe(clients[0]);
    expect(clients[5]).not.toBe(clients[0]);
  });

  test('is not found by what looks like an address of a trusted proxy and is none', async () => {
    const clients = await clientsOf('key: [ip], trustedProxies: [127.0.0.0/8, 10.0.0.0/8, "::ffff:192.168.0.0/112"]', [
      from('203.0.113.7'),
      from('203.0.113.8, 10.0.0.1, nobody'), // what nobody can have been is nobody
      from('203.0.113.8, nobody'),
      from('203.0.113.7, ::ffff:10.0.0.1'),
      from('203.0.113.7, 192.168.4.4'),
      from('203.0.113.8, 192.169.0.1'),
      from('192.169.0.1'),
    ]);
    const [client, odd, same, mapped, block, outside, itself] = clients;
    expect(odd).toBe(same);
    expect([mapped, block]).toEqual([client, client]);
    expect(outside).toBe(itself);
    expect(new Set([client, odd, outside]).size).toBe(3);
  });

  test('is believed from whoever connects by a listed address alone, however many headers there are', async () => {
    const [plain, liar] = await clientsOf('key: [ip], trustedProxies: [10.0.0.0/8]', [
      {},
      {
        headers: [
          ...['X-Forwarded-For', '10.0.0.1', 'X-Real-IP', '10.0.0.1', 'Forwarded', 'for=10.0.0.1'],
          ...['X-Client-IP', '1.1.1.1', 'True-Client-IP', '1.1.1.1', 'CF-Connecting-IP', '1.1.1.1'],
          ...['X-Forwarded', 'for=1.1.1.1', 'X-Cluster-Client-IP', '1.1.1.1'],
        ],
      },
    ]);
    expect(liar).toBe(plain);
  });

  test('of IPv6 counts by its network, and IPv4 within IPv6 as IPv4', async () => {
    const clients = await clientsOf('key: [ip], trustedProxies: [127.0.0.1]', [
      from('2001:db8:1:2:3:4:5:6'),
      from('[2001:db8:1:2::ffff]:443'),
      from('2001:db8:1:3::1'),
      from('::ffff:203.0.113.7'),
      from('203.0.113.7'),
    ]);
    expect(clients[1]).toBe(clients[0]);
    expect(clients[2]).not.toBe(clients[0]);
    expect(clients[3]).toBe(clients[4]);
  });
});

test('no more clients are remembered than may be', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
clients: {key: ["header:x-api-key"], maxTracked: 5}
`);
  for (let i = 0; i < 20; i += 1) await send(gate.url, '/', { headers: ['X-Api-Key', `k-${i}`] });
  expect(await gate.metric('tidegate_clients_tracked')).toBe(5);
  expect(await gate.metric('tidegate_client_evictions_total{cause="calm"}')).toBe(15);
});
