import { Readable } from 'node:stream';
import { IdleLimit } from '../../core/endpoints/keep-alive-estimator.ts';
import { Line } from '../../core/collections/linked-queue.ts';
import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ConnectionOptions, Errand } from './http1-connection.ts';
import { Connection } from './http1-connection.ts';

export interface ConnectionPoolOptions
  extends Omit<ConnectionOptions, 'onConnect' | 'onConnectionError' | 'onDisconnect'> {
  readonly most: number;
  readonly clock: Clock;
  /** A connection is free again, or may be made. */
  readonly onFree: () => void;
}

/** A close so early is no habit of closing what is idle: a restart, or the last of so many requests. */
const LEAST_IDLE: Millis = 250;

/**
 * The connections to one endpoint. The one used last is used again first, so that those too many become idle and end.
 * One that the other side may be about to close is not used again (`IdleLimit`), nor one to an address that the name has
 * left. Requests beyond `most` wait in turn; where we enforce they wait in the gate's fair queue before they come here.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #all = new Set<Connection>();
  /** The one used last at the end. */
  readonly #idle: Connection[] = [];
  readonly #waiting = new Line<Errand>();
  /** Whose answers have come in this turn of the event loop. */
  readonly #settling: Connection[] = [];
  /** Those under way to being made, whose errand has given up: they will serve others. */
  #orphans = 0;
  readonly #idleLimit = new IdleLimit();

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  /** @param fresh on a connection of its own making, not on one that has been used before */
  send(errand: Errand, fresh: boolean): void {
    const connection = (fresh ? undefined : this.#takeIdle()) ?? this.#open();
    if (connection !== undefined) return connection.send(errand);
    errand.hadToWait = this.#orphans === 0;
    this.#waiting.push(errand);
  }

  /** The attempt is over: its connection serves another, or is no more. */
  over(errand: Errand): void {
    const { connection, attempt } = errand;
    if (connection !== undefined && attempt.isComplete) {
      // Some close right after an answer and do not say so: that is seen within a turn of the event loop.
      this.#settleSoon(connection);
      connection.served += 1;
      connection.idleSince = this.#options.clock.now();
      return;
    }
    // The request could not be written; or undici is just telling that the connection broke, and must not be handed another.
    if (connection?.isAtRest === true) return this.#settleSoon(connection);
    if (connection === undefined) {
      this.#waiting.remove(errand);
    } else {
      connection.errand = undefined;
      if (connection.isBeingMade && !attempt.sent) this.#orphan(connection, errand);
      else this.#drop(connection);
    }
    this.#options.onFree();
  }

  /** Ends idle connections to addresses that the name has left. The others end when they are free. */
  leaveOld(): void {
    for (const connection of [...this.#idle]) {
      if (!this.#leadsOn(connection)) this.#drop(connection);
    }
  }

  async destroy(): Promise<void> {
    this.#waiting.clear();
    await Promise.all([...this.#all].map((connection) => connection.destroy()));
  }

  #takeIdle(): Connection | undefined {
    const connection = this.#idle.at(-1);
    if (connection === undefined) return undefined;
    const { limit } = this.#idleLimit;
    if (limit < Infinity && this.#options.clock.now() - connection.idleSince > limit) return undefined;
    return this.#idle.pop();
  }

  #open(): Connection | undefined {
    if (this.#all.size >= this.#options.most) {
      const [oldest] = this.#idle;
      if (oldest === undefined) return undefined;
      this.#drop(oldest);
    }
    const connection = new Connection({
      ...this.#options,
      onConnect: this.#onConnect,
      onConnectionError: this.#onConnectionError,
      onDisconnect: this.#onDisconnect,
    });
    this.#all.add(connection);
    return connection;
  }

  /** What takes longer to make than one attempt may last would never be made, were it given up with it. */
  #orphan(connection: Connection, { options: { body } }: Errand): void {
    this.#orphans += 1;
    connection.isOrphan = true;
    // undici 8.13.1 reads the body before it asks whether the request is still wanted (writeH1); the next attempt needs it.
    if (body instanceof Readable) body.destroy();
  }

  readonly #onConnect = (connection: Connection): void => {
    if (connection.isOrphan) setImmediate(this.#adopt, connection); // undici looks at what was given up first
  };

  readonly #adopt = (connection: Connection): void => {
    if (!connection.isOrphan || connection.isDestroyed) return;
    this.#orphans -= 1;
    connection.isOrphan = false;
    connection.idleSince = this.#options.clock.now();
    if (connection.isAtRest) this.#release(connection);
    else this.#drop(connection);
  };

  readonly #onConnectionError = (connection: Connection): void => {
    if (connection.isOrphan) this.#drop(connection);
  };

  /** All of a turn of the event loop together: one more for each would cost as much as a timer. */
  #settleSoon(connection: Connection): void {
    if (this.#settling.push(connection) === 1) setImmediate(this.#settleAll);
  }

  readonly #settleAll = (): void => {
    for (const connection of this.#settling.splice(0)) this.#settle(connection);
  };

  #settle(connection: Connection): void {
    if (connection.isDestroyed) return;
    connection.errand = undefined;
    if (connection.isConnected && this.#leadsOn(connection)) this.#release(connection);
    else this.#drop(connection);
    this.#options.onFree();
  }

  #release(connection: Connection): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next);
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection);
    if (connection.isOrphan) this.#orphans -= 1;
    connection.isOrphan = false;
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    void connection.destroy();
    const next = this.#waiting.shift();
    if (next !== undefined) this.send(next, false);
  }

  #leadsOn({ address }: Connection): boolean {
    return address === undefined || this.#options.leadsTo(address);
  }

  readonly #onDisconnect = (connection: Connection, error: Error): void => {
    const { errand } = connection;
    // One that is sent, or just being answered, hears of it itself. One that is not goes out on a new connection.
    if (errand?.attempt.sent === true) return;
    this.#learn(connection, error);
    if (errand === undefined) this.#drop(connection);
  };

  #learn({ idleSince, served }: Connection, error: Error): void {
    const idleFor = this.#options.clock.now() - idleSince;
    // All that undici 8.13.1 ends itself has one code; of an idle connection it says this.
    if (error.message === 'socket idle timeout') this.#idleLimit.outlived();
    else if (isTheirs(error) && served > 0 && idleFor >= LEAST_IDLE) this.#idleLimit.closed(idleFor);
  }
}

function isTheirs(error: Error): boolean {
  return !('code' in error) || error.code !== 'UND_ERR_INFO';
}
