import { Line } from '../../core/collections/linked-queue.ts';
import type { Connections } from './endpoints.ts';
import type { Errand } from './http1-connection.ts';
import { UnreadError } from './send-failure.ts';
import type { Http2ConnectionOptions, Http2Owner } from './http2-connection.ts';
import { Http2Connection } from './http2-connection.ts';
import type { Http2Send } from './http2-upstream-stream.ts';
import { Upload } from '../request/streaming-body.ts';

export interface SharedConnectionsOptions extends Http2ConnectionOptions {
  /** Connections, at most; beside them as many may be at their last requests, and a few where this is little. */
  readonly most: number;
  /** There is room for a request again. */
  readonly onFree: () => void;
  /** For an endpoint that does not take HTTP/2. */
  readonly http1: Connections;
}

/** Worn out or not, so many connections are not too many. */
const FEW = 16;

/**
 * The connections to one endpoint that HTTP/2 is offered to. Each carries up to a hundred requests, or as many as the other side
 * takes; the first with room is used, so that those too many become idle and end. One is made at a time, and requests wait
 * for it. An endpoint that chooses HTTP/1.1 is spoken to in that from then on.
 */
export class SharedConnections implements Connections, Http2Owner {
  readonly #options: SharedConnectionsOptions;
  readonly #all = new Set<Http2Connection>();
  readonly #waiting = new Line<Errand>();
  /** It takes no HTTP/2: its requests are spoken in HTTP/1.1. */
  #isPlain = false;

  constructor(options: SharedConnectionsOptions) {
    this.#options = options;
  }

  send(errand: Errand, fresh: boolean): void {
    if (this.#isPlain) return this.#sendPlain(errand, fresh);
    const connection = this.#find();
    if (connection !== undefined) return connection.send(errand);
    errand.hadToWait = ![...this.#all].some(({ isBeingMade }) => isBeingMade);
    this.#waiting.push(errand);
  }

  /** Its place is free when its stream is closed; one that has none has none to give back. */
  over(errand: Errand): void {
    if (errand.isPlain) return this.#options.http1.over(errand);
    if (this.#waiting.remove(errand) || !errand.isPlaced) this.#options.onFree();
  }

  /** Gives no more requests to connections to addresses that the name has left, and ends those that have none. */
  leaveOld(): void {
    for (const connection of this.#all) this.#dropIfDone(connection);
    this.#pump();
  }

  async destroy(): Promise<void> {
    const waiting = this.#waiting.clear();
    for (const connection of this.#all) connection.destroy();
    for (const { attempt } of waiting) attempt.onResponseError(undefined, new Error('all connections are closed'));
    await Promise.resolve();
  }

  onDeclined(connection: Http2Connection): void {
    this.#all.delete(connection);
    this.#isPlain = true;
    for (const errand of this.#waiting.clear()) this.#sendPlain(errand, false);
  }

  /** Who waits for others that are in use waits on: another is not made before somebody asks again. */
  onError(connection: Http2Connection, error: Error): void {
    this.#all.delete(connection);
    if (this.#all.size > 0) return;
    for (const { attempt } of this.#waiting.clear()) attempt.onResponseError(undefined, error);
  }

  onRoom(): void {
    this.#pump();
  }

  onClosed(connection: Http2Connection, send: Http2Send): void {
    const { errand } = send;
    errand.isPlaced = false;
    this.#dropIfDone(connection);
    const error = send.takeError();
    if (error instanceof UnreadError && error.code === 'GOAWAY' && mayMove(errand)) {
      errand.hasMoved = true;
      errand.attempt.onUnread();
      this.send(errand, false);
    } else if (errand.isOver) {
      this.#options.onFree();
    } else if (error !== undefined) {
      errand.attempt.onResponseError(undefined, error);
    }
    this.#pump();
  }

  onGone(connection: Http2Connection): void {
    this.#all.delete(connection);
    this.#pump();
  }

  #sendPlain(errand: Errand, fresh: boolean): void {
    errand.speakPlainly();
    this.#options.http1.send(errand, fresh);
  }

  #find(): Http2Connection | undefined {
    let worn: Http2Connection | undefined;
    for (const connection of this.#all) {
      if (!connection.hasRoom || !this.#leadsOn(connection)) continue;
      if (!connection.isWornOut) return connection;
      worn = connection;
    }
    if ([...this.#all].some(({ isBeingMade }) => isBeingMade) || this.#open()) return undefined;
    return worn; // the least worn out
  }

  /** Returns whether another is being made. */
  #open(): boolean {
    const { most } = this.#options;
    if (this.#all.size >= Math.max(2 * most, FEW)) return false;
    const inUse = [...this.#all].filter((connection) => !connection.isWornOut && !connection.isLeaving);
    if (inUse.length >= most) return false;
    this.#all.add(new Http2Connection(this.#options, this));
    return true;
  }

  #pump(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#find();
      if (connection === undefined) return;
      const errand = this.#waiting.shift();
      if (errand !== undefined) connection.send(errand);
    }
  }

  #dropIfDone(connection: Http2Connection): void {
    if (connection.isAtRest && (connection.isWornOut || !this.#leadsOn(connection))) connection.destroy();
  }

  #leadsOn({ address }: Http2Connection): boolean {
    return address === undefined || this.#options.leadsTo(address);
  }
}

/** It was not read, and can be sent as it was; once. */
function mayMove({ hasMoved, isOver, options: { body } }: Errand): boolean {
  return !hasMoved && !isOver && !(body instanceof Upload && body.isBegun);
}
