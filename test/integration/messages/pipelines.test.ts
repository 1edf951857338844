import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Http1ServerResponse } from '../../../src/http/server/http1-server-response.ts';
import { Http1ServerRequest } from '../../../src/http/server/http1-server-request.ts';
import { Pipelines } from '../../../src/http/server/pipelines.ts';
import { StartQueue } from '../../../src/http/server/start-queue.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const AT_ONCE = new StartQueue({ now: () => 0, needsTimers: () => false });

/** `/at-once` is answered when it starts, all others when the test does so. */
async function openServer(
  prepare: (response: Http1ServerResponse) => void = () => undefined,
  startQueue: Pick<StartQueue, 'mustWait' | 'add' | 'size'> = AT_ONCE,
) {
  const begun: string[] = [];
  const open: Http1ServerResponse[] = [];
  let waiting = 0;
  const pipelines = new Pipelines(
    (socket) => socket.destroy(),
    () => {
      waiting += 1;
      return () => void (waiting -= 1);
    },
    startQueue,
  );
  const server = createServer(
    { IncomingMessage: Http1ServerRequest, ServerResponse: Http1ServerResponse },
    (request, response) => {
      prepare(response);
      pipelines.enqueue(request, response, ({ url = '' }) => {
        begun.push(url);
        if (url === '/at-once') response.end(url);
        else open.push(response);
      });
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A TCP server's address has a port.
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const ask = (...paths: string[]): void =>
    void client.write(paths.map((path) => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`).join(''));
  /** Two requests in one write, and a third while the second is in progress. */
  const askThree = async (): Promise<void> => {
    ask('/at-once', '/slow');
    await eventually(
      () => open.length,
      (count) => count === 1,
    );
    ask('/next');
    await sleep(50);
  };
  return { begun, open, ask, askThree, client, waiting: () => waiting };
}

test('starts the next request when the previous response ends, even if an earlier one is already removed', async () => {
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

test('releases only its own place when a response counts as written early, as in Node 22', async () => {
  const { begun, askThree } = await openServer((response) => {
    Object.defineProperty(response, 'writableFinished', { get: () => response.writableEnded });
  });
  await askThree();
  expect(begun).toEqual(['/at-once', '/slow']);
});

describe('while requests wait for their turn', () => {
  async function openBusy() {
    const starts: (() => void)[] = [];
    const startQueue = { mustWait: true, size: 0, add: (start: () => void) => void starts.push(start) };
    const opened = await openServer(undefined, startQueue);
    const startNext = (): void => starts.shift()?.();
    return { ...opened, starts, startNext };
  }

  test('starts one request of a connection at a time, in order, and counts those that wait', async () => {
    const { begun, open, ask, starts, startNext, waiting } = await openBusy();
    ask('/first', '/second');
    await eventually(waiting, (count) => count === 2);
    expect([begun.length, starts.length]).toEqual([0, 1]);
    startNext();
    expect([begun, waiting(), starts.length]).toEqual([['/first'], 1, 0]);
    open[0]?.end();
    await eventually(
      () => starts.length,
      (count) => count === 1,
    );
    startNext();
    expect([begun, waiting()]).toEqual([['/first', '/second'], 0]);
    open[1]?.end();
    ask('/third');
    await eventually(waiting, (count) => count === 1);
    startNext();
    expect(begun).toEqual(['/first', '/second', '/third']);
  });

  test('never starts a request whose client has disconnected meanwhile', async () => {
    const { begun, ask, client, startNext, waiting } = await openBusy();
    ask('/first');
    await eventually(waiting, (count) => count === 1);
    client.destroy();
    await eventually(waiting, (count) => count === 0);
    startNext();
    expect(begun).toEqual([]);
  });
});
