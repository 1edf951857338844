import type { Millis } from '../../../core/scalars.ts';
import type { PooledSend } from '../pooled-send.ts';
import { countConnecting, countUnopened } from './count-connections.ts';
import type { Http2ConnectionListener } from './http2-connection.ts';
import { Http2Connection } from './http2-connection.ts';
import type { Http2ConnectionOptions } from './http2-options.ts';

interface ConnectionOpeningsOptions extends Http2ConnectionOptions {
  readonly maxConnections: number;
  readonly listener: Http2ConnectionListener;
  /** Another connection may be opened. */
  readonly onPauseEnd: () => void;
}

/** After two failures in a row; it doubles with each further one, up to the longest. */
const FIRST_PAUSE: Millis = 25;
const LONGEST_PAUSE: Millis = 250;

/**
 * The connections that are being opened, each for the request that needed it, though it may carry another one. While an endpoint refuses
 * further connections, requests are served by those that there are, and only one request at a time fails for trying another.
 */
export class ConnectionOpenings {
  readonly #all: Set<Http2Connection>;
  readonly #options: ConnectionOpeningsOptions;
  readonly #requests = new WeakMap<Http2Connection, PooledSend>();
  /** In a row. */
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param all the connections of the pool, to which those that are opened are added */
  constructor(all: Set<Http2Connection>, options: ConnectionOpeningsOptions) {
    this.#all = all;
    this.#options = options;
  }

  /** Whether another connection may be opened now. */
  get isPossible(): boolean {
    return this.#timer === undefined && countUnopened(this.#all, this.#options.maxConnections) > 0;
  }

  /**
   * Opens another connection if there may be one and fewer are being opened than are needed.
   * @returns false if as many cannot be
   */
  provide(pending: PooledSend, needed: number): boolean {
    return countConnecting(this.#all) >= needed || this.#begin(pending);
  }

  #begin(pending: PooledSend): boolean {
    if (!this.isPossible) return false;
    const connection = new Http2Connection(this.#options, this.#options.listener);
    this.#all.add(connection);
    this.#requests.set(connection, pending);
    return true;
  }

  /** It is open. */
  succeed(connection: Http2Connection): void {
    if (this.#requests.delete(connection)) this.#endPause();
  }

  /**
   * Returns the request that it was opened for, whether that still waits or not.
   * @param areOthersLeft otherwise, nothing would be served during a pause
   */
  fail(connection: Http2Connection, areOthersLeft: boolean): PooledSend | undefined {
    const pending = this.#requests.get(connection);
    this.#requests.delete(connection);
    if (!areOthersLeft) {
      this.#endPause();
      return pending;
    }
    this.#failures += 1;
    if (this.#failures < 2 || this.#timer !== undefined) return pending;
    const pause = Math.min(FIRST_PAUSE * 2 ** (this.#failures - 2), LONGEST_PAUSE);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#options.onPauseEnd();
    }, pause).unref();
    return pending;
  }

  #endPause(): void {
    this.#failures = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
