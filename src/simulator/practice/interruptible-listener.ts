import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Millis } from '../../core/scalars.ts';
import { LONGEST_TIMER } from '../../http/longest-timer.ts';

/** Whether to listen, and until when. */
export interface ListenState {
  readonly open: boolean;
  readonly holdsForMs: Millis;
}

const BACKLOG = 4096;
const REOPEN_RETRY_MS: Millis = 50;

/** Keeps a server listening on one port, except while the upstream model refuses connections. */
export class InterruptibleListener {
  readonly #server: Server;
  readonly #readState: () => ListenState;
  #address: { readonly host: string; readonly port: number };
  /** True while `listen` is pending: Node resolves even an address asynchronously, and throws on a second call. */
  #opening = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(server: Server, host: string, port: number, readState: () => ListenState) {
    this.#server = server;
    this.#readState = readState;
    this.#address = { host, port };
  }

  get port(): number {
    return this.#address.port;
  }

  /** Listens once in any case, so that the port is known. Rejects if the port is taken. */
  async open(): Promise<void> {
    this.#listen();
    await once(this.#server, 'listening');
    this.#opening = false;
    const address = this.#server.address();
    if (typeof address === 'object' && address !== null) this.#address = { ...this.#address, port: address.port };
    this.#server.on('listening', () => {
      this.#opening = false;
      this.update();
    });
    this.#server.on('error', () => {
      this.#opening = false;
      this.#scheduleUpdate(REOPEN_RETRY_MS); // somebody else took the port while it was closed
    });
    this.update();
  }

  /** Applies the model's state now, and again when it changes. */
  update(): void {
    if (this.#opening || this.#closed) return;
    const { open, holdsForMs } = this.#readState();
    if (open && !this.#server.listening) return this.#listen();
    if (!open && this.#server.listening) this.#stopListening();
    this.#scheduleUpdate(holdsForMs);
  }

  /** Closes the server and its connections for good. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    if (this.#opening) await once(this.#server, 'listening');
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#stopListening();
    await closed;
  }

  #listen(): void {
    this.#opening = true;
    this.#server.listen({ ...this.#address, backlog: BACKLOG });
  }

  #stopListening(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #scheduleUpdate(wait: Millis): void {
    clearTimeout(this.#timer);
    if (wait === Number.POSITIVE_INFINITY || this.#closed) return;
    this.#timer = setTimeout(() => this.update(), Math.min(LONGEST_TIMER, Math.ceil(wait))).unref();
  }
}
