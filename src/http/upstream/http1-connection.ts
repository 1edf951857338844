import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { Client } from 'undici';
import type { Millis } from '../../core/scalars.ts';
import { dispatchAsterisk } from '../undici/asterisk-form.ts';
import type { AssignedConnection, PooledSend, RequestWriter } from './pooled-send.ts';
import { batchWhenBusy } from '../undici/write-batching.ts';
import { readSynchronously } from '../undici/sync-reads.ts';
import { patchParsers } from '../undici/parser-patches.ts';
import { releaseWrittenBuffers } from '../undici/buffer-release.ts';
import { ASTERISK } from '../request/request-target.ts';

export interface Http1ConnectionOptions {
  readonly origin: string;
  readonly client: Omit<Client.Options, 'connect'>;
  readonly connect: ReturnType<typeof buildConnector>;
  /** Whether the endpoint's name resolves to this address. */
  readonly isCurrentAddress: (address: string) => boolean;
  readonly onConnect: (connection: Http1Connection) => void;
  readonly onConnectionError: (connection: Http1Connection) => void;
  readonly onDisconnect: (connection: Http1Connection, error: Error) => void;
}

/** One connection to an endpoint. undici opens it when it is first needed, and again if it was lost before anything was sent. */
export class Http1Connection implements AssignedConnection, RequestWriter {
  /** The send that uses it. */
  pending: PooledSend | undefined = undefined;
  responsesServed = 0;
  /** Since when no send uses it. */
  idleSince: Millis = 0;
  /** The remote address; undefined until it is connected, and if the endpoint's name does not resolve to it. */
  address: string | undefined = undefined;
  isConnected = false;
  isConnecting = false;
  /** It is still connecting, and the send that it was opened for has given up. */
  isOrphan = false;
  isDestroyed = false;
  /** undici announces a request before it writes it, in the same call. */
  readonly isUnwritten = false;
  readonly isResetBusy = false;
  readonly #client: Client;
  #socket: Socket | undefined;

  constructor({ origin, client, connect, isCurrentAddress, ...callbacks }: Http1ConnectionOptions) {
    this.#client = new Client(origin, {
      ...client,
      connect: (options, done) => {
        this.isConnecting = true;
        // The TLS server name is the connector's: see `DispatchRequest.servername`.
        connect({ ...options, servername: '' }, (...result) => {
          const [error, socket] = result;
          this.isConnecting = false;
          if (error === null) {
            this.isConnected = true;
            this.#socket = socket;
            this.responsesServed = 0;
            const { remoteAddress } = socket;
            this.address = remoteAddress !== undefined && isCurrentAddress(remoteAddress) ? remoteAddress : undefined;
          }
          done(...result);
          if (error === null && !socket.destroyed) {
            releaseWrittenBuffers(socket);
            readSynchronously(socket);
          }
        });
      },
    });
    patchParsers(this.#client, (version) => {
      if (this.pending !== undefined) this.pending.responseVersion = version;
    });
    this.#client.on('connect', () => callbacks.onConnect(this));
    this.#client.on('connectionError', () => callbacks.onConnectionError(this));
    this.#client.on('disconnect', (_origin, _targets, error) => {
      this.isConnected = false;
      if (!this.isDestroyed) callbacks.onDisconnect(this, error);
    });
  }

  get isFlushed(): boolean {
    return (this.#socket?.writableLength ?? 0) === 0;
  }

  /** Connected, with no request under way or queued. */
  get isIdle(): boolean {
    return this.isConnected && this.#client.stats.size === 0;
  }

  send(pending: PooledSend): void {
    this.pending = pending;
    pending.connection = this;
    pending.writer = this;
    if (this.isConnected) batchWhenBusy(() => this.#dispatch(pending));
    else this.#dispatch(pending); // dispatching opens the connection
  }

  /** Does nothing if the send was cancelled before its batch was written. */
  #dispatch(pending: PooledSend): void {
    if (this.pending !== pending || pending.isOver) return;
    const { request } = pending;
    if (request.path === ASTERISK) dispatchAsterisk(this.#client, request, pending);
    else this.#client.dispatch(request, pending);
  }

  /** Closes it at once. */
  destroy(): Promise<void> {
    this.isDestroyed = true;
    return this.#client.destroy();
  }
}
