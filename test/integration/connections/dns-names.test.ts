import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { startDns } from '../../support/upstreams/dns-server.ts';
import { pause } from '../../support/pause.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { startSwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

/** The same port at two addresses of this host. */
async function twoHosts() {
  const one = await startSwitchableUpstream({ host: '127.0.0.1' });
  const two = await startSwitchableUpstream({ host: '127.0.0.2', port: one.port });
  one.answer((_, response) => void response.end('one'));
  two.answer((_, response) => void response.end('two'));
  return { one, two, url: `http://api.example:${one.port}` };
}

async function ask(gate: Tidegate, agent = keepAlive()): Promise<string> {
  const { status, body } = await send(gate.url, '/', { agent });
  return status === 200 ? body.toString() : String(status);
}

const yaml = (url: string, more = '') =>
  `upstreams: {api: {url: "${url}", dnsRefresh: 50ms, retry: {attempts: 1}, ${more}}}`;

describe('a hostname', () => {
  test('is followed to its new address, by kept-alive connections too', async () => {
    const { url } = await twoHosts();
    const dns = await startDns(['127.0.0.1']);
    const gate = await startTidegate(yaml(url), dns);
    const agent = keepAlive();
    const askAtOnce = () => Promise.all(Array.from({ length: 8 }, () => ask(gate)));
    expect(new Set(await askAtOnce())).toEqual(new Set(['one']));
    dns.names(['127.0.0.2']);
    // Requests so close together that the connection is never idle for long.
    await eventually(
      () => ask(gate, agent),
      (answer) => answer === 'two',
    );
    // Connections that were idle meanwhile have closed as well.
    expect(new Set(await askAtOnce())).toEqual(new Set(['two']));
  });

  test('that drops an address does not abort requests in flight to it', async () => {
    const { one, two, url } = await twoHosts();
    const dns = await startDns(['127.0.0.1']);
    const gate = await startTidegate(yaml(url), dns);
    one.answer((_, response) => {
      one.answer((_request, next) => void next.end('one'));
      response.write('begun');
      void pause(500).then(() => response.end(', and ended'));
    });
    const slow = send(gate.url, '/');
    await eventually(one.hits, (hits) => hits.length === 1);
    dns.names(['127.0.0.2']);
    let answered = false;
    void slow.then(() => {
      answered = true;
    });
    // The name is resolved again while requests are sent to it.
    await eventually(
      () => ask(gate).then(() => answered),
      (is) => is,
    );
    expect((await slow).body.toString()).toBe('begun, and ended');
    expect(two.hits().length).toBeGreaterThan(0);
    for (let i = 0; i < 5; i += 1) expect(await ask(gate)).toBe('two');
  });

  test('that no longer resolves keeps existing connections working, fails new ones and sends nothing', async () => {
    const { one, url } = await twoHosts();
    const dns = await startDns(['127.0.0.1']);
    const gate = await startTidegate(yaml(url), dns);
    const agent = keepAlive();
    expect(await ask(gate, agent)).toBe('one');
    dns.names('failure');
    for (let i = 0; i < 10; i += 1) {
      expect(await ask(gate, agent)).toBe('one');
      await pause(20);
    }
    await one.stop();
    await one.start();
    const lost = await send(gate.url, '/', { method: 'POST', body: 'x' });
    expect([lost.status, lost.json()['reason'], lost.header('tidegate-outcome')]).toEqual([502, 'connect', undefined]);
    dns.names(['127.0.0.1']);
    expect(await ask(gate)).toBe('one');
    expect(one.hits().filter((method) => method === 'POST')).toEqual([]);
  });

  test('whose lookup hangs fails after the connect timeout and is retried', async () => {
    const { url } = await twoHosts();
    const dns = await startDns(['127.0.0.1']);
    dns.names('silence');
    const gate = await startTidegate(yaml(url, 'perTryTimeout: 200ms'), dns);
    const lost = await send(gate.url, '/', { method: 'POST', body: 'x' });
    expect([lost.status, lost.json()['reason']]).toEqual([502, 'connect']);
    dns.names(['127.0.0.1']);
    await eventually(
      () => ask(gate),
      (answer) => answer === 'one',
    );
  });

  test('whose later lookups get no answer is reached at its known address', async () => {
    const { one, url } = await twoHosts();
    one.answer((_, response) => void response.setHeader('Connection', 'close').end('one'));
    const dns = await startDns(['127.0.0.1']);
    const gate = await startTidegate(yaml(url, 'perTryTimeout: 30s'), dns);
    expect(await ask(gate)).toBe('one');
    dns.names('silence');
    for (let i = 0; i < 3; i += 1) expect(await ask(gate)).toBe('one');
    dns.names(['127.0.0.2']);
    await eventually(
      () => ask(gate),
      (answer) => answer === 'two',
    );
  });

  test('is resolved periodically rather than for every request', async () => {
    const { url } = await twoHosts();
    const dns = await startDns(['127.0.0.1']);
    const gate = await startTidegate(yaml(url).replace('50ms', '10m'), dns);
    await Promise.all(Array.from({ length: 10 }, () => ask(gate)));
    for (let i = 0; i < 20; i += 1) await ask(gate);
    expect(dns.asked()).toBeLessThan(10);
    const agent = keepAlive();
    const asked = dns.asked();
    for (let i = 0; i < 20; i += 1) await ask(gate, agent);
    expect(dns.asked()).toBe(asked);
  });
});

describe('several addresses', () => {
  test('are all used', async () => {
    const { one, two, url } = await twoHosts();
    const held: ServerResponse[] = [];
    for (const host of [one, two]) {
      // Once all have arrived: each request needs a connection of its own.
      host.answer((_, response) => {
        if (held.push(response) === 12) for (const each of held) each.end();
      });
    }
    const dns = await startDns(['127.0.0.1', '127.0.0.2']);
    const gate = await startTidegate(yaml(url), dns);
    await Promise.all(Array.from({ length: 12 }, () => ask(gate)));
    expect([one.hits().length, two.hits().length]).toEqual([6, 6]);
  });

  test('keep serving when one refuses and one has an unreachable address family', async () => {
    const { one, url } = await twoHosts();
    await one.stop();
    // 100::/64 discards all packets (RFC 6666): it has no route, or nothing answers.
    const dns = await startDns(['0100:0:0:0:0:0:0:1', '127.0.0.1', '127.0.0.2']);
    const gate = await startTidegate(yaml(url), dns);
    for (let i = 0; i < 2; i += 1) {
      const { status, body } = await send(gate.url, '/', { method: 'HEAD' }); // each on a connection of its own
      expect([status, body.toString()]).toEqual([200, '']);
    }
    expect(gate.view().limits).toMatchObject([{ state: 'open' }]);
  });
});
