import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const CHARGE = 'POST /charges HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\namount=1';
const REFUSED = 'POST / HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 3\r\n\r\nabc';

test('does not process requests pipelined behind a response that closes the connection', async () => {
  const upstream = await startHttpUpstream((_n, response) => void setTimeout(() => response.end('charged'), 200));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  client.write(CHARGE + REFUSED + CHARGE.repeat(3));
  const answers = await client.ended();
  expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  expect(answers).toMatch(/^connection: close\r$/im);
  expect(upstream.hits).toHaveLength(1);
});
