import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral ports, so that a port is still free when its process starts again. */
const PORTS = { first: 22_500, count: 9000 };

/** Draws a free port of 127.0.0.1. */
export async function fixedPort(): Promise<number> {
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
