import type { ClientHttp2Session, Settings } from 'node:http2';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { DispatchRequest } from '../dispatch-request.ts';
import type { PooledSend, Sender } from '../pooled-send.ts';
import type { Http2ConnectionOptions } from './http2-options.ts';
import { Http2UpstreamStream } from './http2-upstream-stream.ts';
import type { Http2StreamCarrier } from './http2-upstream-stream.ts';
import { Http2Keepalive } from './http2-keepalive.ts';
import { Http2Output } from './http2-output.ts';
import { Http2ResetPlaces } from './http2-reset-places.ts';
import { destroySoon, openHttp2Session } from './http2-session.ts';
import { isProtocolViolation } from './http2-violations.ts';

/** Learns what happens to a connection. */
export interface Http2ConnectionListener {
  /** The upstream chose HTTP/1.1; the connection is closed. */
  onHttp1Chosen(connection: Http2Connection): void;
  /** Connecting failed; the connection is closed. */
  onError(connection: Http2Connection, error: Error): void;
  /** It takes more requests than before, or fewer: the upstream announced how many, it begins to close, or may be dead. */
  onCapacityChange(connection: Http2Connection): void;
  /** This side closed it, with requests on it, over what the upstream sent. Comes before their `onStreamClosed`. */
  onViolation(error: Error): void;
  /** The head of a response has arrived, and the connection stays open. */
  onResponse(send: Http2UpstreamStream, status: number): void;
  /** The stream of a send is closed. Its error, if any, has not been reported yet: see `takeError`. */
  onStreamClosed(connection: Http2Connection, send: Http2UpstreamStream): void;
  /** The connection is closed, and no send uses it. */
  onEnded(connection: Http2Connection): void;
}

/** Stream ids end at 2^31, and cannot be reused (RFC 9113 §5.1.1). */
const MAX_REQUESTS = 1_000_000;

/** One HTTP/2 connection to an endpoint. When it has closed it is not opened again. */
export class Http2Connection implements Http2StreamCarrier {
  /** The remote address; undefined until it is connected, and if the endpoint's name does not resolve to it. */
  address: string | undefined = undefined;
  isConnecting = true;
  lastStreamId: number | undefined = undefined;
  errorCode: number | undefined = undefined;
  error: Error | undefined = undefined;
  /** Concurrent streams that the upstream takes; 0 until it has announced them. */
  maxStreams = 0;
  /** The largest head that the upstream accepts (RFC 9113 §6.5.2); undefined if it has not announced any. */
  maxHeaderListSize: number | undefined = undefined;
  /** Streams in use. */
  activeStreams = 0;
  /** Whose request has it for itself, if the pool gives it to one at a time. */
  sender: Sender | undefined = undefined;
  readonly #options: Http2ConnectionOptions;
  readonly #listener: Http2ConnectionListener;
  #session: ClientHttp2Session | undefined;
  #keepalive: Http2Keepalive | undefined;
  #socket: Socket | undefined;
  #output: Http2Output | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #requestCount = 0;
  readonly #resetPlaces: Http2ResetPlaces;
  #hasEnded = false;
  #hasReportedViolation = false;

  constructor(options: Http2ConnectionOptions, listener: Http2ConnectionListener) {
    this.#options = options;
    this.#listener = listener;
    this.#resetPlaces = new Http2ResetPlaces(this, () => listener.onCapacityChange(this));
    this.#connect();
  }

  get session(): ClientHttp2Session {
    if (this.#session === undefined) throw new Error('the HTTP/2 connection is not open yet');
    return this.#session;
  }

  get hasCapacity(): boolean {
    return !this.isClosing && !this.isFull;
  }

  /** The upstream may count as many streams as it takes: those in use, and reset ones. */
  get isFull(): boolean {
    return this.activeStreams + this.#resetPlaces.count >= this.maxStreams;
  }

  get isIdle(): boolean {
    return !this.isConnecting && this.activeStreams === 0;
  }

  /** It takes no more requests, and closes when those on it have ended. */
  get isClosing(): boolean {
    return this.#hasEnded || this.hasBroken || this.lastStreamId !== undefined || this.#session?.closed === true;
  }

  /** It ended before its requests did. One of them may be the reason. */
  get hasBroken(): boolean {
    return this.#session?.destroyed === true;
  }

  /** It had many requests or resets, or an excessive one: it finishes its last requests, and gets another only if no other can. */
  get isRetired(): boolean {
    return this.#resetPlaces.hadMany || this.#requestCount >= MAX_REQUESTS;
  }

  /** It may be dead, for now. */
  get isSuspect(): boolean {
    return this.#keepalive?.isPingPending === true || this.#output?.isStuck === true;
  }

  /** It gets a request only if no other connection can. */
  get shouldRetire(): boolean {
    return this.isRetired || this.isSuspect || this.#output?.isDrained === true;
  }

  hasRoomFor(body: DispatchRequest['body']): boolean {
    return this.#output?.hasRoomFor(body) !== false;
  }

  send(pending: PooledSend): void {
    clearTimeout(this.#idleTimer);
    this.#requestCount += 1;
    this.#keepalive?.onRequestSent();
    pending.hasStream = true;
    this.activeStreams += 1;
    this.#resetPlaces.confirmIfFull();
    const send = new Http2UpstreamStream(pending, this);
    this.#output?.add(send);
    send.start();
  }

  onUploadProgress(): void {
    this.#output?.sample();
  }

  onResponse(send: Http2UpstreamStream, status: number): void {
    if (!this.isClosing) this.#listener.onResponse(send, status);
  }

  onClosed(send: Http2UpstreamStream): void {
    this.activeStreams -= 1;
    this.sender = undefined;
    this.#output?.remove(send);
    if (send.wasResetByUs) this.#resetPlaces.onReset();
    else if (send.isExcessive) this.#resetPlaces.onExcessive();
    if (this.activeStreams === 0) this.#startIdleTimer();
    this.#reportViolation(send.error);
    this.#listener.onStreamClosed(this, send);
  }

  /** The streams of a session that Node has closed over an error have that error. */
  #reportViolation(error: Error | undefined): void {
    if (!this.hasBroken || this.#hasReportedViolation || !isProtocolViolation(error)) return;
    this.#hasReportedViolation = true;
    this.#listener.onViolation(error);
  }

  /** Closes it at once. */
  destroy(): void {
    this.#session?.destroy();
    this.#end();
  }

  #connect(): void {
    const { protocol, host, hostname, port } = new URL(this.#options.origin);
    const bareHostname = hostname.replace(/^\[|\]$/g, '');
    // The TLS server name is the connector's: see `DispatchRequest.servername`.
    this.#options.connect({ protocol, host, hostname: bareHostname, port, servername: '' }, (...[error, socket]) => {
      if (this.#hasEnded) return void socket?.destroy();
      if (error === null) this.#onSocket(socket);
      else this.#fail(error);
    });
  }

  #onSocket(socket: Socket | TLSSocket): void {
    const { origin, isCurrentAddress, clock } = this.#options;
    if (!('alpnProtocol' in socket) || socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#markEnded();
      return this.#listener.onHttp1Chosen(this);
    }
    const { remoteAddress: address } = socket;
    this.address = address !== undefined && isCurrentAddress(address) ? address : undefined;
    const session = openHttp2Session(origin, socket);
    this.#session = session;
    this.#socket = socket;
    const output = new Http2Output(session, socket, clock);
    this.#output = output;
    this.#keepalive = new Http2Keepalive(session, socket, output, {
      hasRequests: () => this.activeStreams > 0,
      onPingChange: () => this.#listener.onCapacityChange(this),
    });
    const onError = (cause: Error): void => void (this.error ??= cause);
    socket.on('error', onError);
    session.on('error', onError);
    // The upstream announces first how many streams it takes (RFC 9113 §3.4). More would wait within Node, unnoticed.
    session.on('remoteSettings', (settings: Settings) => {
      const { maxConcurrentStreams = Infinity, maxHeaderListSize, initialWindowSize } = settings;
      this.isConnecting = false;
      this.maxHeaderListSize = maxHeaderListSize;
      output.streamWindow = initialWindowSize ?? output.streamWindow;
      this.maxStreams = Math.min(this.#options.maxStreams, maxConcurrentStreams);
      if (this.activeStreams === 0) this.#startIdleTimer();
      this.#listener.onCapacityChange(this);
    });
    setTimeout(() => this.isConnecting && session.destroy(), this.#options.connectTimeout).unref();
    session.on('goaway', (code: number, lastStreamID: number) => {
      if (code !== constants.NGHTTP2_NO_ERROR) this.errorCode ??= code;
      this.lastStreamId = Math.min(this.lastStreamId ?? lastStreamID, lastStreamID);
      if (this.activeStreams === 0) this.#startIdleTimer();
      this.#listener.onCapacityChange(this);
    });
    session.on('close', this.#onClosed);
    // A session that was destroyed during a write may never be closed.
    socket.on('close', () => setImmediate(() => this.activeStreams === 0 && this.#onClosed()));
  }

  readonly #onClosed = (): void => {
    if (this.isConnecting) this.#fail(this.error ?? new Error('the connection closed before it sent SETTINGS'));
    else this.#end();
  };

  #fail(error: Error): void {
    if (this.#hasEnded) return;
    this.#markEnded();
    this.#listener.onError(this, error);
  }

  #startIdleTimer(): void {
    clearTimeout(this.#idleTimer);
    if (this.#session === undefined || this.#hasEnded) return;
    if (this.isClosing) return this.#session.destroy();
    this.#idleTimer = setTimeout(() => this.#session?.destroy(), this.#options.idleTimeout).unref();
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#markEnded();
    this.#listener.onEnded(this);
  }

  #markEnded(): void {
    this.#hasEnded = true;
    this.isConnecting = false;
    clearTimeout(this.#idleTimer);
    this.#keepalive?.stop();
    if (this.#socket !== undefined) destroySoon(this.#socket);
  }
}
