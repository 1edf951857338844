import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Below the ephemeral ports: no other program gets the port for an outgoing connection, and no connection to it is one to itself. */
const PORTS = { first: 22_500, count: 9000 };
/** Here only root may listen, and no test or common service does. */
const REFUSING = { first: 700, count: 150 };

let nextRefusing = Math.floor(Math.random() * REFUSING.count);

/** Draws a port of 127.0.0.1 on which nobody listens, for a program that cannot choose one, or that starts there again. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    server.listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
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
