import { describe, expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';

/** The hashed clients of these requests, in order, from the log. */
async function clientsOf(clients: string, requests: { target?: string; headers?: string[] }[]): Promise<string[]> {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\nclients: {${clients}}`);
  for (const { target = '/', headers = [] } of requests) await send(gate.url, target, { headers });
  const lines = await eventually(gate.requests, ({ length }) => length === requests.length);
  return lines.map(({ client }) => String(client));
}

describe('the client label of metrics', () => {
  test('is the configured name, by key or address, and absent for all other clients', async () => {
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

describe('the client key', () => {
  test('is the first configured header that is present', async () => {
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

  test('can be a path segment', async () => {
    const [a, again, b] = await clientsOf('key: ["path:2"]', [
      { target: '/tenants/a/x' },
      { target: '/tenants/a?b' },
      { target: '/tenants/b' },
    ]);
    expect(a).toBe(again);
    expect(a).not.toBe(b);
  });

  test('in a path segment never appears in the log, whatever the outcome', async () => {
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

  test('is rejected when its header appears twice, as the upstream may use the other one', async () => {
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

  test('distinguishes clients by the name of the header as well as its value', async () => {
    const [byKey, byUser] = await clientsOf('key: ["header:x-api-key", "header:x-user"]', [
      { headers: ['X-Api-Key', 'same'] },
      { headers: ['X-User', 'same'] },
    ]);
    expect(byKey).not.toBe(byUser);
  });
});

describe('the address of a client', () => {
  const from = (...forwarded: string[]) => ({ headers: forwarded.flatMap((each) => ['X-Forwarded-For', each]) });

  test('is that of the connection, whatever an untrusted client sends', async () => {
    const [plain, spoofing] = await clientsOf('key: [ip]', [{}, from('203.0.113.7')]);
    expect(spoofing).toBe(plain);
  });

  test('is the last one that no trusted proxy added', async () => {
    const clients = await clientsOf('key: [ip], trustedProxies: [127.0.0.0/8, 10.0.0.0/8, "fd00::/8"]', [
      from('203.0.113.7'),
      from('6.6.6.6, 203.0.113.7, 10.1.2.3'), // entries that the client wrote itself are ignored
      from('6.6.6.6', '203.0.113.7', 'fd00::1'),
      from('203.0.113.7:4711'),
      from('203.0.113.8'),
      from(''),
    ]);
    expect(new Set(clients.slice(0, 4)).size).toBe(1);
    expect(clients[4]).not.toBe(clients[0]);
    expect(clients[5]).not.toBe(clients[0]);
  });

  test('is not taken from a malformed entry that resembles a trusted proxy’s address', async () => {
    const clients = await clientsOf('key: [ip], trustedProxies: [127.0.0.0/8, 10.0.0.0/8, "::ffff:192.168.0.0/112"]', [
      from('203.0.113.7'),
      from('203.0.113.8, 10.0.0.1, nobody'), // an invalid address identifies nobody
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

  test('is accepted from any trusted address, however many header lines there are', async () => {
    const [plain, spoofing] = await clientsOf('key: [ip], trustedProxies: [10.0.0.0/8]', [
      {},
      {
        headers: [
          ...['X-Forwarded-For', '10.0.0.1', 'X-Real-IP', '10.0.0.1', 'Forwarded', 'for=10.0.0.1'],
          ...['X-Client-IP', '1.1.1.1', 'True-Client-IP', '1.1.1.1', 'CF-Connecting-IP', '1.1.1.1'],
          ...['X-Forwarded', 'for=1.1.1.1', 'X-Cluster-Client-IP', '1.1.1.1'],
        ],
      },
    ]);
    expect(spoofing).toBe(plain);
  });

  test('counts by network for IPv6, and as IPv4 for IPv4-mapped addresses', async () => {
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

test('bounds the number of remembered clients', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
clients: {key: ["header:x-api-key"], maxTracked: 5}
`);
  for (let i = 0; i < 20; i += 1) await send(gate.url, '/', { headers: ['X-Api-Key', `k-${i}`] });
  expect(await gate.metric('tidegate_clients_tracked')).toBe(5);
  expect(await gate.metric('tidegate_client_evictions_total{cause="calm"}')).toBe(15);
});
