import { once } from 'node:events';
import type { Server } from 'node:net';
import { connect, createServer } from 'node:net';

/** Below the ephemeral ports: no other program gets the port for an outgoing connection, and no connection to it is one to itself. */
const PORTS = { first: 22_500, count: 9000 };
/** Here only root may listen, and no test or common service does. */
const REFUSING = { first: 700, count: 150 };

let nextRefusing = Math.floor(Math.random() * REFUSING.count);

/**
 * Draws a port of 127.0.0.1 on which nobody listens, for a program that cannot choose one, or that starts there again. No other call
 * returns it as long as this process runs, in whichever process of the tests.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    if (!(await reserve(port))) continue;
    const server = await listen(port);
    if (server === undefined) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

const reserved = new Set<number>();

/** Where Linux has them, a socket in the abstract namespace is the reservation: it ends with the process. */
async function reserve(port: number): Promise<boolean> {
  if (reserved.has(port)) return false;
  reserved.add(port);
  if (process.platform !== 'linux') return true;
  const server = await listen(`\0tidegate-test-port-${port}`);
  server?.unref();
  return server !== undefined;
}

/** Undefined if the place is in use. */
async function listen(place: number | string): Promise<Server | undefined> {
  const server = createServer();
  if (typeof place === 'number') server.listen(place, '127.0.0.1');
  else server.listen(place);
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}

/** Returns a port of 127.0.0.1 on which nobody listens, and nobody will. */
export async function refusingPort(): Promise<number> {
  for (;;) {
    const port = REFUSING.first + nextRefusing;
    nextRefusing = (nextRefusing + 1) % REFUSING.count;
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      socket.destroy();
    } catch {
      return port;
    }
  }
}
