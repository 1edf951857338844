import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

test('an event stream is in flight until it ends: the upstream may limit how many there are', async () => {
  const streams: ServerResponse[] = [];
  const { url } = await listen((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    streams.push(response);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${url}"}}`);
  const inFlight = (): number | undefined => gate.view().limits[0]?.inFlight;
  const clients = [await openRaw(gate.url), await openRaw(gate.url)];
  for (const client of clients) {
    client.write('GET / HTTP/1.1\r\nHost: api\r\n\r\n');
    await client.until('data: 1');
  }
  expect(inFlight()).toBe(2);
  streams[0]?.end();
  await eventually(inFlight, (count) => count === 1);
  clients[1]?.socket.destroy();
  await eventually(inFlight, (count) => count === 0);
});
