import type { ClientHttp2Session } from 'node:http2';

export interface ResettableConnection {
  readonly session: ClientHttp2Session;
  /** No place is left for another stream, unless those of reset ones are free. */
  readonly isFull: boolean;
}

/**
 * A request whose client has disconnected is reset. Upstreams close a connection with too many resets (CVE-2023-44487:
 * Node 24 after 1000, Go after 400 at once, nginx after 100 at once), with all other requests on it. So a connection
 * takes no more requests before that.
 */
const MAX_RESETS = 100;

/**
 * Counts streams that this side has reset and that the upstream may still count. Node 24.21 as an upstream removes a stream in the
 * turn after it has read the reset, and resets a stream that is opened before that unread, with a code that does not say so
 * (ENHANCE_YOUR_CALM). So the place of a reset stream is free once the upstream has answered a PING that it received after the
 * reset. One PING is under way at a time, and only while the connection is full.
 */
export class Http2ResetPlaces {
  /** Streams that the upstream may still count. */
  count = 0;
  readonly #connection: ResettableConnection;
  readonly #onFree: () => void;
  #isConfirming = false;
  #resets = 0;
  #wasExcessive = false;

  constructor(connection: ResettableConnection, onFree: () => void) {
    this.#connection = connection;
    this.#onFree = onFree;
  }

  /** So many that the connection must take no more requests, or the upstream takes none. */
  get hadMany(): boolean {
    return this.#resets >= MAX_RESETS || this.#wasExcessive;
  }

  /**
   * The upstream has reset a request because it holds too much on the connection, and may do so with each further one. Node 24.21 does
   * when `maxSessionMemory` is used up, as by responses that are not read, and of those that are aborted it does not subtract all: see
   * http2-session-memory.ts.
   */
  onExcessive(): void {
    this.#wasExcessive = true;
  }

  onReset(): void {
    this.#resets += 1;
    this.count += 1;
    this.confirmIfFull();
  }

  /** To be called when the connection may have become full. */
  confirmIfFull(): void {
    if (this.count === 0 || this.#isConfirming || !this.#connection.isFull) return;
    this.#isConfirming = true;
    setImmediate(() => this.#ping(0)); // Node writes the resets of this turn first
  }

  /**
   * nghttp2 writes a PING before all frames that wait. Resets that wait with it are confirmed by the next PING.
   * @param written resets that were written before
   */
  #ping(written: number): void {
    const { session } = this.#connection;
    if (session.destroyed) return;
    const { count } = this;
    const confirmed = session.state.outboundQueueSize === 0 ? count : written;
    session.ping((error) => {
      if (error !== null) return; // the connection is closed
      this.count -= confirmed;
      if (confirmed < count) return this.#ping(count - confirmed);
      this.#isConfirming = false;
      this.confirmIfFull();
      this.#onFree();
    });
  }
}
