import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Http1Outbound } from '../../src/http/server/http1-server-response.ts';
import { Http1Inbound } from '../../src/http/server/server-request.ts';
import { Pipelines } from '../../src/http/server/pipelines.ts';
import { eventually } from '../support/tidegate.ts';

/** `/at-once` is answered as it begins, and all others when the test does. */
async function openServer(prepare: (response: Http1Outbound) => void = () => undefined) {
  const begun: string[] = [];
  const open: Http1Outbound[] = [];
  const pipelines = new Pipelines((socket) => socket.destroy());
  const server = createServer({ IncomingMessage: Http1Inbound, ServerResponse: Http1Outbound }, (request, response) => {
    prepare(response);
    pipelines.take(request, response, ({ url = '' }) => {
      begun.push(url);
      if (url === '/at-once') response.end(url);
      else open.push(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens by TCP has an address and a port.
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const ask = (...paths: string[]): void =>
    void client.write(paths.map((path) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`).join(''));
  /** Two in one write, and a third while the second is under way. */
  const askThree = async (): Promise<void> => {
    ask('/at-once', '/slow');
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    ask('/next');
    await sleep(50);
  };
  return { begun, open, askThree };
}

test('what follows begins when what went before is answered, be it that something before that has been forgotten', async () => {
  const { begun, open, askThree } = await openServer();
  await askThree();
  expect(begun).toEqual(['/at-once', '/slow']);
  open[0]?.end();
  await eventually(
    () => begun.length,
    (count) => count === 3,
  );
  expect(begun[2]).toBe('/next');
});

test('where an answer counts as written before it is let go of, as in Node 22, it takes nobody else’s place with it', async () => {
  const { begun, askThree } = await openServer((response) => {
    Object.defineProperty(response, 'writableFinished', { get: () => response.writableEnded });
  });
  await askThree();
  expect(begun).toEqual(['/at-once', '/slow']);
});
