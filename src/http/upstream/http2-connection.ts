import type { ClientHttp2Session, ClientSessionOptions, Settings } from 'node:http2';
import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import { MAX_STREAMS } from '../../config/schema/listen-schema.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Errand } from './http1-connection.ts';
import { Http2Send } from './http2-upstream-stream.ts';
import type { SendCarrier } from './http2-upstream-stream.ts';
import { Pulse } from './http2-keepalive.ts';
import { MOST_SESSION_MEMORY } from '../undici/http2-session-memory.ts';

export interface Http2ConnectionOptions {
  readonly origin: string;
  readonly connect: ReturnType<typeof buildConnector>;
  /** Whether the name of the endpoint leads to this address. */
  readonly leadsTo: (address: string) => boolean;
  /** How long it is kept while nothing is asked on it. */
  readonly idle: Millis;
  /** How long its TLS, and then its first frame, may take. */
  readonly connectTimeout: Millis;
}

/** Who has connections made. */
export interface Http2Owner {
  /** The other side has chosen HTTP/1.1: it is closed. */
  onDeclined(connection: Http2Connection): void;
  /** It could not be made, and is closed. */
  onError(connection: Http2Connection, error: Error): void;
  /** There is room on it, or more than there was. */
  onRoom(): void;
  /** A send is over, its stream closed, and the reason why it was not whole not told yet. */
  onClosed(connection: Http2Connection, send: Http2Send): void;
  /** Nothing is on it any more, and nothing can be sent. */
  onGone(connection: Http2Connection): void;
}

/**
 * A client that asks and leaves has its stream reset. Upstreams end a connection with too many of those (CVE-2023-44487: Node
 * 24 after 1000, Go after 400 at once, nginx after 100 at once), whoever else is on it. Before that it gets no more requests.
 */
const MAX_RESETS = 100;

/** Streams are numbered once, up to 2^31, and then none can be opened any more (RFC 9113 §5.1.1). */
const MAX_REQUESTS = 1_000_000;

/**
 * What may come of an answer before its client reads it, and of all answers of a connection on their way: at a round trip of
 * 50 ms, 5 MB/s and 20 MB/s. The default of 64 KiB for both would be 1.3 MB/s for all together.
 */
const STREAM_WINDOW = 256 * 1024;
const CONNECTION_WINDOW = 1024 * 1024;

/** Types of Node 24.19 know one of them only for servers. */
type SessionOptions = ClientSessionOptions & { readonly strictSingleValueFields: boolean };

/** A connection over HTTP/2 to an endpoint, being made or in use. It is used until it ends, and not made again. */
export class Http2Connection implements SendCarrier {
  /** Where it leads; undefined while it is not made, and where the name was not asked for it. */
  address: string | undefined = undefined;
  isBeingMade = true;
  lastRead: number | undefined = undefined;
  error: Error | undefined = undefined;
  readonly #options: Http2ConnectionOptions;
  readonly #owner: Http2Owner;
  #session: ClientHttp2Session | undefined;
  #pulse: Pulse | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #sent = 0;
  #resets = 0;
  /** What the other side takes at a time; 0 until it has said so. */
  #places = 0;
  /** Sends under way. */
  #sends = 0;
  #isGone = false;

  constructor(options: Http2ConnectionOptions, owner: Http2Owner) {
    this.#options = options;
    this.#owner = owner;
    this.#make();
  }

  get session(): ClientHttp2Session {
    if (this.#session === undefined) throw new Error('a connection that is not made');
    return this.#session;
  }

  get hasRoom(): boolean {
    return !this.isLeaving && this.#sends < this.#places;
  }

  get isAtRest(): boolean {
    return !this.isBeingMade && this.#sends === 0;
  }

  /** It ends with the requests that are on it. */
  get isLeaving(): boolean {
    return this.#isGone || this.lastRead !== undefined || this.#session?.closed === true;
  }

  /** It has done enough, or may be dead: only where there is no other does it get another request. */
  get isWornOut(): boolean {
    return this.#pulse?.isDoubtful === true || this.#resets >= MAX_RESETS || this.#sent >= MAX_REQUESTS;
  }

  send(errand: Errand): void {
    clearTimeout(this.#idleTimer);
    this.#sent += 1;
    this.#pulse?.expect();
    errand.isPlaced = true;
    this.#sends += 1;
    new Http2Send(errand, this).begin();
  }

  onWritten(): void {
    this.#pulse?.noteWindow();
  }

  onClosed(send: Http2Send): void {
    this.#sends -= 1;
    if (send.wasReset) this.#resets += 1;
    if (this.#sends === 0) this.#rest();
    this.#owner.onClosed(this, send);
  }

  /** Ends it, at once. */
  destroy(): void {
    if (this.#session !== undefined) this.#session.destroy();
    this.#end();
  }

  #make(): void {
    const { protocol, host, hostname, port } = new URL(this.#options.origin);
    const bare = hostname.replace(/^\[|\]$/g, '');
    // The name to ask for is the connector's own: see `SendOptions.servername`.
    this.#options.connect({ protocol, host, hostname: bare, port, servername: '' }, (...[error, socket]) => {
      if (this.#isGone) return void socket?.destroy();
      if (error === null) this.#receive(socket);
      else this.#fail(error);
    });
  }

  #receive(socket: Socket | TLSSocket): void {
    const { origin, leadsTo } = this.#options;
    if (!('alpnProtocol' in socket) || socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#leave();
      return this.#owner.onDeclined(this);
    }
    const { remoteAddress } = socket;
    this.address = remoteAddress !== undefined && leadsTo(remoteAddress) ? remoteAddress : undefined;
    const options: SessionOptions = {
      createConnection: () => socket,
      maxSessionMemory: MOST_SESSION_MEMORY,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
      // What a client repeats is passed on as it is, over HTTP/1.1 too.
      strictSingleValueFields: false,
    };
    const session = connectHttp2(origin, options);
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW));
    this.#session = session;
    this.#pulse = new Pulse(session, socket, () => this.#sends > 0);
    socket.on('error', (cause) => {
      this.error ??= cause;
    });
    session.on('error', (cause: Error) => {
      this.error ??= cause;
    });
    // It says first how many streams it takes (RFC 9113 §3.4); more than that would wait within Node, where nothing is told.
    session.on('remoteSettings', ({ maxConcurrentStreams = MAX_STREAMS }: Settings) => {
      this.isBeingMade = false;
      this.#places = Math.min(MAX_STREAMS, maxConcurrentStreams);
      if (this.#sends === 0) this.#rest();
      this.#owner.onRoom();
    });
    setTimeout(() => this.isBeingMade && session.destroy(), this.#options.connectTimeout).unref();
    session.on('goaway', (_code: number, lastStreamID: number) => {
      this.lastRead = Math.min(this.lastRead ?? lastStreamID, lastStreamID);
      if (this.#sends === 0) this.#rest();
    });
    session.on('close', () => {
      if (this.isBeingMade) this.#fail(this.error ?? new Error('closed before its SETTINGS'));
      else this.#end();
    });
  }

  #fail(error: Error): void {
    if (this.#isGone) return;
    this.#leave();
    this.#owner.onError(this, error);
  }

  #rest(): void {
    clearTimeout(this.#idleTimer);
    if (this.#session === undefined || this.#isGone) return;
    if (this.isLeaving) return this.#session.destroy();
    this.#idleTimer = setTimeout(() => this.#session?.destroy(), this.#options.idle).unref();
  }

  #end(): void {
    if (this.#isGone) return;
    this.#leave();
    this.#owner.onGone(this);
  }

  #leave(): void {
    this.#isGone = true;
    this.isBeingMade = false;
    clearTimeout(this.#idleTimer);
    this.#pulse?.end();
  }
}
