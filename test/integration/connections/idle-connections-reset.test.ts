import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { keepAlive, send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const AT_ONCE = 30;
const ROUNDS = 5;

test('loses no response when idle connections are reset just as they are reused', async () => {
  const sockets = new Set<Socket>();
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    request.resume();
    setTimeout(() => response.end('well'), 20); // each needs a connection of its own
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const gate = await startTidegate(`
upstreams:
  api:
    url: "http://127.0.0.1:${(server.address() as AddressInfo).port}"
    connections: ${AT_ONCE / 2} # the other half waits, and goes on at once where one has ended
    retry: {attempts: 5, backOff: {strategy: fixed, baseInterval: 0ms}, budget: {ratio: 1, burst: 1000}}
`);
  const agent = keepAlive();
  const ask = () => Promise.all(Array.from({ length: AT_ONCE }, () => send(gate.url, '/', { agent })));
  for (let round = 0; round < ROUNDS; round += 1) {
    await ask();
    const answers = ask();
    await new Promise((resolve) => setImmediate(resolve));
    for (const socket of sockets) socket.resetAndDestroy();
    expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([200]));
  }
});
