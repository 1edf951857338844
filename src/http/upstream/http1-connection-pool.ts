import { Readable } from 'node:stream';
import { KeepAliveEstimator } from '../../core/endpoints/keep-alive-estimator.ts';
import { LinkedQueue } from '../../core/collections/linked-queue.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { Http1ConnectionOptions } from './http1-connection.ts';
import { Http1Connection } from './http1-connection.ts';
import type { EndpointConnections, PooledSend } from './pooled-send.ts';

export interface Http1ConnectionPoolOptions
  extends Omit<Http1ConnectionOptions, 'onConnect' | 'onConnectionError' | 'onDisconnect'> {
  readonly maxConnections: number;
  readonly clock: Clock;
  /** A connection is free again, or may be made. */
  readonly onCapacity: () => void;
}

/** A close sooner than this is not an idle timeout: the server restarted, or reached its maximum of requests for a connection. */
const MIN_IDLE: Millis = 250;

/**
 * The HTTP/1.1 connections to one endpoint. The one used last is reused first, so that surplus connections become idle and close.
 * A connection that the upstream may be about to close is not reused (`KeepAliveEstimator`), nor one to an address that the name
 * no longer resolves to. Requests beyond `maxConnections` wait in order; in enforce mode they wait in the gate's fair queue
 * before they get here.
 */
export class Http1ConnectionPool implements EndpointConnections {
  readonly #options: Http1ConnectionPoolOptions;
  readonly #all = new Set<Http1Connection>();
  /** The one used last is at the end. */
  readonly #idle: Http1Connection[] = [];
  readonly #waiting = new LinkedQueue<PooledSend>();
  /** Connections whose response ended in this turn of the event loop. */
  readonly #finishing: Http1Connection[] = [];
  /** Connecting for a send that has given up; they will serve others. */
  #orphans = 0;
  readonly #idleLimit = new KeepAliveEstimator();

  constructor(options: Http1ConnectionPoolOptions) {
    this.#options = options;
  }

  get hasOpenConnection(): boolean {
    for (const { isConnected } of this.#all) if (isConnected) return true;
    return false;
  }

  send(pending: PooledSend, fresh: boolean): void {
    const connection = (fresh ? undefined : this.#takeIdle()) ?? this.#open();
    if (connection !== undefined) return connection.send(pending);
    pending.waitedForConnection = this.#orphans <= this.#waiting.length;
    this.#waiting.push(pending);
  }

  release(pending: PooledSend): void {
    const connection = pending.connection instanceof Http1Connection ? pending.connection : undefined;
    if (connection !== undefined && pending.isComplete) {
      // Some servers close right after a response without announcing it, which shows within a turn of the event loop.
      this.#finishSoon(connection);
      connection.responsesServed += 1;
      connection.idleSince = this.#options.clock.now();
      return;
    }
    // The request could not be written; or undici is reporting right now that the connection broke, and must not get another.
    if (connection?.isIdle === true) return this.#finishSoon(connection);
    if (connection === undefined) {
      this.#waiting.remove(pending);
    } else {
      connection.pending = undefined;
      if (connection.isConnecting && !pending.sent) this.#orphan(connection, pending);
      else this.#drop(connection);
    }
    this.#options.onCapacity();
  }

  /** Closes idle connections to dropped addresses. The others close when their request ends. */
  dropStaleAddresses(): void {
    for (const connection of [...this.#idle]) {
      if (!this.#isCurrentAddress(connection)) this.#drop(connection);
    }
  }

  async destroy(): Promise<void> {
    const waiting = this.#waiting.clear();
    const closed = [...this.#all].map((connection) => connection.destroy());
    for (const pending of waiting) pending.onResponseError(undefined, new Error('all connections are closed'));
    await Promise.all(closed);
  }

  #takeIdle(): Http1Connection | undefined {
    const connection = this.#idle.at(-1);
    if (connection === undefined) return undefined;
    const { maxIdle } = this.#idleLimit;
    if (maxIdle < Infinity && this.#options.clock.now() - connection.idleSince > maxIdle) return undefined;
    return this.#idle.pop();
  }

  #open(): Http1Connection | undefined {
    if (this.#all.size >= this.#options.maxConnections) {
      const [oldest] = this.#idle;
      if (oldest === undefined) return undefined;
      this.#drop(oldest);
    }
    const connection = new Http1Connection({
      ...this.#options,
      onConnect: this.#onConnect,
      onConnectionError: this.#onConnectionError,
      onDisconnect: this.#onDisconnect,
    });
    this.#all.add(connection);
    return connection;
  }

  /** Keeps connecting: a connection that takes longer than an attempt may last would otherwise never be made. */
  #orphan(connection: Http1Connection, { request: { body } }: PooledSend): void {
    this.#orphans += 1;
    connection.isOrphan = true;
    // undici 8.13.1 reads the body before it checks whether to send it (writeH1), and the next attempt needs the body.
    if (body instanceof Readable) body.destroy();
  }

  readonly #onConnect = (connection: Http1Connection): void => {
    if (connection.isOrphan) setImmediate(this.#adopt, connection); // undici handles the cancelled request first
  };

  readonly #adopt = (connection: Http1Connection): void => {
    if (!connection.isOrphan || connection.isDestroyed) return;
    this.#orphans -= 1;
    connection.isOrphan = false;
    connection.idleSince = this.#options.clock.now();
    if (connection.isIdle) this.#release(connection);
    else this.#drop(connection);
  };

  readonly #onConnectionError = (connection: Http1Connection): void => {
    if (connection.isOrphan) this.#drop(connection);
  };

  /** Once for all connections of a turn of the event loop: one callback each would cost as much as a timer. */
  #finishSoon(connection: Http1Connection): void {
    if (this.#finishing.push(connection) === 1) setImmediate(this.#finishAll);
  }

  readonly #finishAll = (): void => {
    for (const connection of this.#finishing.splice(0)) this.#finish(connection);
  };

  #finish(connection: Http1Connection): void {
    if (connection.isDestroyed) return;
    connection.pending = undefined;
    if (connection.isConnected && this.#isCurrentAddress(connection)) this.#release(connection);
    else this.#drop(connection);
    this.#options.onCapacity();
  }

  #release(connection: Http1Connection): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next);
  }

  #drop(connection: Http1Connection): void {
    this.#all.delete(connection);
    if (connection.isOrphan) this.#orphans -= 1;
    connection.isOrphan = false;
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.destroy();
    const next = this.#waiting.shift();
    if (next !== undefined) this.send(next, false);
  }

  #isCurrentAddress({ address }: Http1Connection): boolean {
    return address === undefined || this.#options.isCurrentAddress(address);
  }

  readonly #onDisconnect = (connection: Http1Connection, error: Error): void => {
    const { pending } = connection;
    // A send under way gets the error from undici. One that has not been sent goes out on a new connection.
    if (pending?.sent === true) return;
    this.#recordClose(connection, error);
    if (pending === undefined) this.#drop(connection);
  };

  #recordClose({ idleSince, responsesServed }: Http1Connection, error: Error): void {
    const idleFor = this.#options.clock.now() - idleSince;
    // undici 8.13.1 closes with one code for all reasons; this is its message for an idle connection.
    if (error.message === 'socket idle timeout') this.#idleLimit.onLocalClosed();
    else if (isClosedByPeer(error) && responsesServed > 0 && idleFor >= MIN_IDLE) this.#idleLimit.onPeerClosed(idleFor);
  }
}

function isClosedByPeer(error: Error): boolean {
  return !('code' in error) || error.code !== 'UND_ERR_INFO';
}
