/** A port that Prometheus knows from its start, for a process that starts later. */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

export class ScrapePort {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: { readonly host: string; readonly port: number } | undefined;

  private constructor() {
    this.#server = createServer((client) => this.#accept(client));
  }

  /** Opens a free port. It closes every connection until `forwardTo`. The caller must close it. */
  static async open(): Promise<ScrapePort> {
    const port = new ScrapePort();
    port.#server.listen(0, '127.0.0.1');
    await once(port.#server, 'listening');
    return port;
  }

  /** `host:port` */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Forwards the bytes of later connections to this URL, unchanged; closes them if undefined. Closes open ones. */
  forwardTo(url: string | undefined): void {
    if (url !== undefined) {
      const { hostname, port } = new URL(url);
      this.#target = { host: hostname, port: Number(port) };
    } else this.#target = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.forwardTo(undefined);
    this.#server.close();
  }

  #accept(client: Socket): void {
    if (this.#target === undefined) {
      client.destroy();
      return;
    }
    const target = connect(this.#target);
    client.pipe(target).pipe(client);
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined); // 'close' follows
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
