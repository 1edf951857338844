import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** Whether to listen, and how long that holds. */
export interface DoorState {
  readonly open: boolean;
  readonly wait: Millis;
}

const BACKLOG = 4096;
const LONGEST_TIMER: Millis = 2 ** 31 - 1;
const REOPEN_RETRY: Millis = 50;

/** Keeps a server listening on one port, except while its upstream refuses connections. */
export class Door {
  readonly #server: Server;
  readonly #look: () => DoorState;
  #address: { readonly host: string; readonly port: number };
  /** Asked to listen; Node resolves even an address only later, and throws when asked twice. */
  #opening = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(server: Server, host: string, port: number, look: () => DoorState) {
    this.#server = server;
    this.#look = look;
    this.#address = { host, port };
  }

  get port(): number {
    return this.#address.port;
  }

  /** Listens once in any case, so that the port is known. Rejects when the port is not to be had. */
  async open(): Promise<void> {
    this.#listen();
    await once(this.#server, 'listening');
    this.#opening = false;
    const address = this.#server.address();
    if (typeof address === 'object' && address !== null) this.#address = { ...this.#address, port: address.port };
    this.#server.on('listening', () => {
      this.#opening = false;
      this.follow();
    });
    this.#server.on('error', () => {
      this.#opening = false;
      this.#wake(REOPEN_RETRY); // somebody else took the port while it was closed
    });
    this.follow();
  }

  /** Looks again, now and whenever what it saw ends. */
  follow(): void {
    if (this.#opening || this.#closed) return;
    const { open, wait } = this.#look();
    if (open && !this.#server.listening) return this.#listen();
    if (!open && this.#server.listening) this.#shut();
    this.#wake(wait);
  }

  /** Closes for good, connections and all. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#opening) await once(this.#server, 'listening');
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#shut();
    await closed;
  }

  #listen(): void {
    this.#opening = true;
    this.#server.listen({ ...this.#address, backlog: BACKLOG });
  }

  #shut(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #wake(wait: Millis): void {
    clearTimeout(this.#timer);
    if (wait === Number.POSITIVE_INFINITY || this.#closed) return;
    this.#timer = setTimeout(() => this.follow(), Math.min(LONGEST_TIMER, Math.ceil(wait))).unref();
  }
}
