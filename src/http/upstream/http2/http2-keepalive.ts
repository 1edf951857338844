import type { ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Millis } from '../../../core/scalars.ts';
import type { Http2Output } from './http2-output.ts';
import { destroySoon } from './http2-session.ts';

/** A connection that is silent for this long while a response is due is sent a PING. */
const PING_INTERVAL: Millis = 2000;
/** PINGs get rarer while the upstream answers them and sends nothing else: some treat many PINGs as an attack (gRPC). */
const MAX_PING_INTERVAL: Millis = 64_000;
/**
 * The ACK of a PING may take PING_INTERVAL, and the time that a slow line (bytes per millisecond) needs for what may be
 * in transit before it: an upload waits in the system's buffers, which hold some megabytes (tcp(7), tcp_wmem).
 */
const MIN_BANDWIDTH = 50;
const MAX_IN_TRANSIT = 4 * 1024 * 1024;
/** Bytes in transit that are not bodies: heads, which have no flow control. */
const HEAD_BYTES = 64 * 1024;

interface PingedConnection {
  /** Whether requests are under way on it. */
  readonly hasRequests: () => boolean;
  /** `isPingPending` has changed. */
  readonly onPingChange: () => void;
}

/**
 * Detects a dead HTTP/2 connection. Node 24.21 may never report it: if a write fails at once, as after a reset, its session does
 * not notice, makes the next write wait for the failed one, and reads nothing meanwhile (src/node_http2.cc, OnStreamAfterWrite;
 * src/crypto/crypto_tls.cc, EncOut). Every request on the connection then hangs.
 */
export class Http2Keepalive {
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #connection: PingedConnection;
  readonly #output: Http2Output;
  readonly #timer: NodeJS.Timeout;
  /** Bytes received and sent at the last check. */
  #bytesRead = 0;
  #bytesWritten = 0;
  /** Bytes that may be in transit on a slow line. */
  #inTransit = 0;
  #silentFor: Millis = 0;
  /** How long it may be silent before the next PING. */
  #maxSilence: Millis = PING_INTERVAL;
  /** Time since the PING; undefined if it was answered. */
  #pingedFor: Millis | undefined;

  constructor(session: ClientHttp2Session, socket: Socket, output: Http2Output, connection: PingedConnection) {
    this.#session = session;
    this.#socket = socket;
    this.#output = output;
    this.#connection = connection;
    this.#timer = setInterval(this.#check, PING_INTERVAL).unref();
  }

  /** A PING has not been answered yet. */
  get isPingPending(): boolean {
    return this.#pingedFor !== undefined;
  }

  onRequestSent(): void {
    this.#maxSilence = PING_INTERVAL;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  readonly #check = (): void => {
    // Node closes the socket of a destroyed session once a write has ended. That may never happen.
    if (this.#session.destroyed) return destroySoon(this.#socket);
    if (this.#isAlive()) return;
    if (this.#pingedFor === undefined) {
      this.#silentFor += PING_INTERVAL;
      if (this.#silentFor >= this.#maxSilence) this.#ping();
      return;
    }
    this.#pingedFor += PING_INTERVAL;
    // Data that arrived while the event loop was busy is read first.
    if (this.#inTransit === 0 && this.#pingedFor >= PING_INTERVAL) setImmediate(this.#destroyIfDead);
  };

  #ping(): void {
    if (this.#session.destroyed || this.#session.closed) return;
    this.#pingedFor = 0;
    this.#maxSilence = Math.min(MAX_PING_INTERVAL, 2 * this.#maxSilence);
    this.#session.ping((error) => {
      if (error !== null || this.#session.destroyed) return;
      this.#inTransit = 0; // the PING arrived behind all of it
      this.#onAnswered();
    });
    this.#connection.onPingChange();
  }

  /** It received or sent bytes since the last check, or nothing is due. */
  #isAlive(): boolean {
    const { bytesRead, bytesWritten } = this.#socket;
    const hasReceived = bytesRead !== this.#bytesRead;
    const hasSent = bytesWritten !== this.#bytesWritten && this.#pingedFor === undefined;
    const pendingBytes = this.#inTransit + bytesWritten - this.#bytesWritten;
    this.#inTransit = Math.min(
      MAX_IN_TRANSIT,
      Math.max(0, pendingBytes - MIN_BANDWIDTH * PING_INTERVAL),
      HEAD_BYTES + this.#unacknowledged(),
    );
    this.#bytesRead = bytesRead;
    this.#bytesWritten = bytesWritten;
    if (!hasReceived && !hasSent && this.#isResponseDue()) return false;
    this.#silentFor = 0;
    if (!hasSent || hasReceived) this.#onAnswered();
    return true;
  }

  #onAnswered(): void {
    if (this.#pingedFor === undefined) return;
    this.#pingedFor = undefined;
    this.#connection.onPingChange();
  }

  /** Body bytes that the upstream has not acknowledged by window updates: no more are in transit (RFC 9113 §5.2). */
  #unacknowledged(): number {
    const now = this.#output.sample();
    return this.#output.largestWindow - now;
  }

  /** A response is due, or frames cannot be written: even those of an abandoned request would delay the next. */
  #isResponseDue(): boolean {
    return this.#connection.hasRequests() || (this.#session.state.outboundQueueSize ?? 0) > 0;
  }

  readonly #destroyIfDead = (): void => {
    if (this.#socket.destroyed || this.#session.destroyed || this.#isAlive()) return;
    this.#socket.destroy(Object.assign(new Error('the upstream did not answer an HTTP/2 PING'), { code: 'ETIMEDOUT' }));
  };
}
