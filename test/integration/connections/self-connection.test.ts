import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { refuseOwnEnd } from '../../../src/http/upstream/connector.ts';
import { freePort } from '../../support/free-port.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

type Connector = Parameters<typeof refuseOwnEnd>[0];

/** Connects from `localPort`, which the system chooses if it is undefined. */
function connector(localPort: number | undefined, opened: (socket: Socket) => void): Connector {
  return refuseOwnEnd(({ hostname, port }, done) => {
    const own = localPort === undefined ? {} : { localAddress: hostname, localPort };
    const socket = connect({ host: hostname, port: Number(port), ...own });
    opened(socket);
    socket.once('connect', () => done(null, socket));
    socket.once('error', (error) => done(error, null));
  });
}

async function attempt(port: number, localPort?: number) {
  let opened: Socket | undefined;
  const own = connector(localPort, (socket) => (opened = socket));
  const target = { hostname: '127.0.0.1', port: String(port), protocol: 'http:' };
  const [error, socket] = await new Promise<[unknown, Socket | null]>((resolve) => {
    own(target, (...result) => resolve([result[0], result[1]]));
  });
  return { error, socket, opened };
}

test('a connection from a port to itself is refused and closed, so that the upstream can listen there', async () => {
  const port = await freePort();
  const { error, socket, opened } = await attempt(port, port);
  const message = `connect ECONNREFUSED 127.0.0.1:${port}`;
  expect(error).toMatchObject({ code: 'ECONNREFUSED', syscall: 'connect', address: '127.0.0.1', port, message });
  expect([socket, opened?.destroyed]).toEqual([null, true]);
});

test('other connections and failures are passed on', async () => {
  const { url } = await listen((_, response) => void response.end());
  const { error, socket } = await attempt(Number(new URL(url).port));
  expect([error, socket?.readyState]).toEqual([null, 'open']);
  socket?.destroy();
  if (socket !== null) await once(socket, 'close');
  const refused = await attempt(await freePort());
  expect(refused).toMatchObject({ error: { code: 'ECONNREFUSED' }, socket: null });
});
