import type { buildConnector, Dispatcher } from 'undici';
import { Client } from 'undici';
import type { Linked } from '../../core/collections/linked-queue.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { dispatchAsterisk } from '../undici/asterisk-form.ts';
import type { Attempt } from './upstream-attempt.ts';
import { sendInTurn } from '../undici/write-batching.ts';
import { hastenReads } from '../undici/sync-reads.ts';
import { mendParsers } from '../undici/parser-patches.ts';
import { giveBackWritten } from '../undici/buffer-release.ts';
import { ASTERISK } from '../request/request-target.ts';

/** undici 8.13.1 reads `servername`, which its types do not name. */
export interface SendOptions extends Dispatcher.DispatchOptions {
  /** Names and values in turn. */
  readonly headers: string[];
  /**
   * What is asked for in TLS, whatever the Host header says: undici takes that for it otherwise, so that with
   * `preserveHost` a client would choose whom a certificate has to name, and break the connection for the next one.
   */
  readonly servername: string;
}

/** A request on its way to an endpoint. */
export class Errand implements Linked<Errand> {
  options: SendOptions;
  readonly attempt: Attempt;
  isOver = false;
  /** Undefined while it waits for one. */
  connection: Connection | undefined = undefined;
  /** Instead, over HTTP/2: it has a stream of a connection that others share. */
  isPlaced = false;
  /** HTTP/2 was offered, and its endpoint does not take it. */
  isPlain = false;
  /** A connection that went away had not read it, and it was given to another. */
  hasMoved = false;
  /** All connections were busy: if it gets none in time, that is no fault of the upstream's. */
  hadToWait = false;
  previous: Errand | undefined = undefined;
  next: Errand | undefined = undefined;

  constructor(options: SendOptions, attempt: Attempt) {
    this.options = options;
    this.attempt = attempt;
  }

  /** It goes over HTTP/1.1, though its headers were written for HTTP/2. */
  speakPlainly(): void {
    this.isPlain = true;
    const { headers } = this.options;
    // Legal without `Connection: TE` in HTTP/2 alone: see forward-headers.ts.
    if (!headers.includes('te')) return;
    this.options = { ...this.options, headers: headers.filter((_, i) => headers[i - (i % 2)] !== 'te') };
  }
}

export interface ConnectionOptions {
  readonly origin: string;
  readonly client: Omit<Client.Options, 'connect'>;
  readonly connect: ReturnType<typeof buildConnector>;
  /** Whether the name of the endpoint leads to this address. */
  readonly leadsTo: (address: string) => boolean;
  readonly onConnect: (connection: Connection) => void;
  readonly onConnectionError: (connection: Connection) => void;
  readonly onDisconnect: (connection: Connection, error: Error) => void;
}

/** One connection to an endpoint: made when it is first needed, and made again where it was lost before anything was sent. */
export class Connection {
  /** Who has it now. */
  errand: Errand | undefined = undefined;
  /** Answers it has brought since it was made. */
  served = 0;
  /** Since when nobody has it. */
  idleSince: Millis = 0;
  /** Where it leads; undefined while it is not made, and where the name was not asked for it. */
  address: string | undefined = undefined;
  isConnected = false;
  isBeingMade = false;
  /** Nobody has it any more, and it is still being made. */
  isOrphan = false;
  isDestroyed = false;
  readonly #client: Client;

  constructor({ origin, client, connect, leadsTo, ...told }: ConnectionOptions) {
    this.#client = new Client(origin, {
      ...client,
      connect: (options, done) => {
        this.isBeingMade = true;
        // The name to ask for is the connector's own: see `SendOptions.servername`.
        connect({ ...options, servername: '' }, (...made) => {
          const [error, socket] = made;
          this.isBeingMade = false;
          if (error === null) {
            this.isConnected = true;
            this.served = 0;
            const { remoteAddress } = socket;
            this.address = remoteAddress !== undefined && leadsTo(remoteAddress) ? remoteAddress : undefined;
          }
          done(...made);
          if (error === null && !socket.destroyed) {
            giveBackWritten(socket);
            hastenReads(socket);
          }
        });
      },
    });
    mendParsers(this.#client, (version) => {
      if (this.errand !== undefined) this.errand.attempt.answerVersion = version;
    });
    this.#client.on('connect', () => told.onConnect(this));
    this.#client.on('connectionError', () => told.onConnectionError(this));
    this.#client.on('disconnect', (_origin, _targets, error) => {
      this.isConnected = false;
      if (!this.isDestroyed) told.onDisconnect(this, error);
    });
  }

  /** Nothing is being done on it, or waits to be. */
  get isAtRest(): boolean {
    return this.isConnected && this.#client.stats.size === 0;
  }

  send(errand: Errand): void {
    this.errand = errand;
    errand.connection = this;
    if (this.isConnected) sendInTurn(() => this.#dispatch(errand));
    else this.#dispatch(errand); // which has the connection made
  }

  /** Unless it was held, and given up meanwhile. */
  #dispatch(errand: Errand): void {
    if (this.errand !== errand || errand.attempt.isOver) return;
    const { options, attempt } = errand;
    if (options.path === ASTERISK) dispatchAsterisk(this.#client, options, attempt);
    else this.#client.dispatch(options, attempt);
  }

  /** Ends it at once. */
  destroy(): Promise<void> {
    this.isDestroyed = true;
    return this.#client.destroy();
  }
}
