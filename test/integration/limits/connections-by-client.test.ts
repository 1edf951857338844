import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

// Event listeners hold connections too, though the limiter counts them as finished once their head has arrived.
test.each(['text/plain', 'text/event-stream'])(
  'gives a scarce connection to the client with the fewest, even if others asked before: %s',
  async (type) => {
    const held: ServerResponse[] = [];
    const { url } = await listen((request, response) => {
      held.push(response);
      response.writeHead(200, { 'Content-Type': type }).write(`for ${String(request.headers['x-forwarded-for'])}\n`);
    });
    const gate = await startTidegate(`
clients: {key: ["header:x-key", ip], trustedProxies: [127.0.0.1]}
upstreams: {api: {url: "${url}", connections: 4, timeout: 60s, perTryTimeout: 60s, queue: {maxWait: 60s}}}
`);
    const ask = async (address: string): Promise<string> =>
      (
        await send(gate.url, '/', { headers: ['X-Forwarded-For', address, 'X-Key', `key of ${address}`] })
      ).body.toString();
    const queued = (count: number) =>
      eventually(
        () => gate.view().limits[0]?.queued,
        (waiting) => waiting === count,
      );
    const answered: string[] = [];
    const note = (answer: Promise<string>): void => void answer.then((text) => answered.push(text.trim()));

    for (let i = 0; i < 4; i += 1) note(ask('203.0.113.1'));
    await eventually(
      () => held.length,
      (count) => count === 4,
    );
    for (let i = 0; i < 2; i += 1) note(ask('203.0.113.1'));
    await queued(2);
    note(ask('203.0.113.2'));
    await queued(3);
    held[0]?.end();
    await queued(2);
    await eventually(
      () => held.length,
      (count) => count === 5,
    );
    held[4]?.end();
    await eventually(
      () => answered,
      ({ length }) => length === 2,
    );
    expect(answered.toSorted()).toEqual(['for 203.0.113.1, 127.0.0.1', 'for 203.0.113.2, 127.0.0.1']);
    await eventually(
      () => {
        for (const response of held) response.end();
        return answered.length;
      },
      (count) => count === 7,
    );
  },
);
