import type { EndpointConnections, PooledSend } from '../pooled-send.ts';
import { RequestNotProcessedError } from '../send-failure.ts';
import type { Http2Connection, Http2ConnectionListener } from './http2-connection.ts';
import { type Http2ConnectionPoolOptions, unsharedOptions } from './http2-options.ts';
import type { Http2UpstreamStream } from './http2-upstream-stream.ts';
import { ConnectionOpenings } from './connection-openings.ts';
import { ConnectionSharing } from './connection-sharing.ts';
import { countCapacity, countConnecting, isAnyOpen } from './count-connections.ts';
import { chooseConnection } from './choose-connection.ts';
import { createUnsharedQueue, type UnsharedQueue } from './unshared-queue.ts';
import { WaitingSends } from './waiting-sends.ts';
import { MAX_CONCURRENT_STREAMS } from '../../../config/schema/listen-schema.ts';

/**
 * The connections to one endpoint that HTTP/2 is offered to. Each carries up to a hundred requests, or as many as the upstream
 * allows. The first with room is used, so that surplus connections become idle and close. Connections are opened one at a time,
 * and requests wait for them. A request that may make the upstream close its connection gets one of its own, as does a streamed body;
 * after a violation of the protocol, for a time, each request does. An endpoint that chooses HTTP/1.1 gets HTTP/1.1 from then on.
 *
 * The number of requests that it carries depends on the endpoint: one for each connection over HTTP/1.1, over HTTP/2 as many as
 * each connection announces. Until the first one has, no more than one for each is certain.
 */
export class Http2ConnectionPool implements EndpointConnections, Http2ConnectionListener {
  readonly #options: Http2ConnectionPoolOptions;
  readonly #all = new Set<Http2Connection>();
  readonly #openings: ConnectionOpenings;
  readonly #waiting: WaitingSends;
  /** The endpoint chose HTTP/1.1. */
  #usesHttp1 = false;
  #isDestroyed = false;
  /** Streams that a connection not yet open is expected to take: as many as the endpoint announced last. */
  #expectedStreams = 1;
  #capacity: number;
  /** The same for the unshared connections. */
  readonly #sharing: ConnectionSharing;
  /** Connections with one request at a time, for requests that may end their connection or stop it. Undefined if these are they. */
  readonly #unshared: Http2ConnectionPool | undefined;
  readonly #isShared: boolean;
  /** Whose unshared connections these are. */
  readonly #parent: Http2ConnectionPool | undefined;
  readonly #unsharedQueue: UnsharedQueue<PooledSend> | undefined;

  constructor(options: Http2ConnectionPoolOptions, parent?: Http2ConnectionPool) {
    this.#options = options;
    this.#capacity = options.maxConnections;
    this.#parent = parent;
    this.#isShared = parent === undefined;
    const onPauseEnd = (): void => this.#sendWaiting();
    this.#unsharedQueue = parent === undefined ? undefined : createUnsharedQueue(this.#all, options, onPauseEnd);
    this.#waiting = new WaitingSends(this.#unsharedQueue);
    const maxStreams = this.#isShared ? MAX_CONCURRENT_STREAMS : 1;
    this.#openings = new ConnectionOpenings(this.#all, { ...options, maxStreams, listener: this, onPauseEnd });
    this.#sharing = parent === undefined ? new ConnectionSharing(options.clock) : parent.#sharing;
    if (parent !== undefined) return;
    const unshared = unsharedOptions(options, (error) => this.onViolation(error));
    this.#unshared = new Http2ConnectionPool(unshared, this);
  }

  get hasOpenConnection(): boolean {
    return isAnyOpen(this.#all) || this.#unshared?.hasOpenConnection === true;
  }

  /** @param fresh its last connection ended, and it may be the reason: others do not share the next one */
  send(pending: PooledSend, fresh: boolean): void {
    if (this.#usesHttp1) return this.#sendOverHttp1(pending, fresh);
    if (this.#sharing.resumeIfDue()) this.#updateCapacity();
    const mayShare = !fresh && this.#sharing.includes(pending.request);
    if (this.#isShared && !mayShare) return this.#sendUnshared(pending, fresh);
    const { forStream } = this.#waiting;
    const mayTakeFree = this.#unsharedQueue?.onAsked(pending.sender) !== false;
    if (mayTakeFree && this.#trySend(pending, forStream.length + 1)) return;
    pending.waitedForConnection = countConnecting(this.#all) <= (this.#isShared ? 0 : forStream.length);
    forStream.push(pending);
    if (this.#unsharedQueue !== undefined) this.#options.onAwaited(this.#unsharedQueue);
  }

  /** A send with a stream frees its place when the stream closes. */
  release(pending: PooledSend): void {
    if (pending.isHttp1Fallback) return this.#options.http1.release(pending);
    if (this.#waiting.remove(pending) || !pending.hasStream) this.#options.onCapacity();
  }

  /** Connections to dropped addresses take no more requests; those without requests are closed. */
  dropStaleAddresses(): void {
    for (const connection of this.#all) this.#closeIfIdle(connection);
    this.#sendWaiting();
    this.#updateCapacity();
    this.#unshared?.dropStaleAddresses();
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    const waiting = this.#waiting.clear();
    for (const connection of this.#all) connection.destroy();
    for (const pending of waiting) pending.onResponseError(undefined, new Error('all connections are closed'));
    await this.#unshared?.destroy();
  }

  onHttp1Chosen(connection: Http2Connection): void {
    this.#all.delete(connection);
    this.#usesHttp1 = true;
    for (const pending of this.#waiting.clear()) this.#sendOverHttp1(pending, false);
    this.#updateCapacity();
  }

  /** The request that it was opened for fails, if it waits; if no connection is left, all do. Those that need room share none. */
  onError(connection: Http2Connection, error: Error): void {
    this.#all.delete(connection);
    const areOthersLeft = [...this.#all].some(this.#takesRequests);
    const openedFor = this.#openings.fail(connection, areOthersLeft);
    if (!areOthersLeft) for (const pending of this.#waiting.clear()) pending.onResponseError(undefined, error);
    for (const pending of this.#waiting.clearForRoom()) this.#sendUnshared(pending, false);
    const mayWait = openedFor?.pool === this && !openedFor.isHttp1Fallback;
    if (mayWait && this.#waiting.remove(openedFor)) openedFor.onResponseError(undefined, error);
    this.#sendWaiting();
    this.#updateCapacity();
  }

  /** Requests that wait here come before those in the gate's queue. */
  onCapacityChange(connection: Http2Connection): void {
    const { isConnecting, isClosing, maxStreams, maxHeaderListSize } = connection;
    if (!isConnecting && !isClosing) this.#expectedStreams = Math.max(1, maxStreams);
    if (!isConnecting) this.#openings.succeed(connection);
    this.#sharing.maxHeaderListSize = maxHeaderListSize;
    this.#sendWaiting();
    this.#updateCapacity();
  }

  /** Those that wait for a shared connection get others. Requests that share one stay there until their ends. */
  onViolation(error: Error): void {
    if (!this.#isShared || this.#sharing.pause()) this.#options.onViolation(error);
    if (!this.#isShared) return;
    this.#resend(this.#waiting.clear());
    this.#updateCapacity();
  }

  /** Heads on shared connections are known to be accepted. */
  onResponse({ pending: { request } }: Http2UpstreamStream, status: number): void {
    if (this.#parent === undefined || !this.#sharing.onResponse(request, status)) return;
    this.#parent.#resend(this.#waiting.clear());
  }

  onStreamClosed(connection: Http2Connection, send: Http2UpstreamStream): void {
    const { pending } = send;
    pending.hasStream = false;
    this.#unsharedQueue?.onReleased(pending, connection);
    this.#closeIfIdle(connection);
    if (connection.isRetired || !this.#takesRequests(connection)) this.#updateCapacity();
    const error = send.takeError();
    const wasUnread = error instanceof RequestNotProcessedError && error.code === 'GOAWAY';
    const wasRejected = connection.errorCode !== undefined;
    const isLost = error !== undefined && (wasRejected || connection.hasBroken);
    if (isLost && this.#isShared) this.#sharing.onConnectionLost(pending.request, wasRejected);
    pending.mayEndConnections = wasUnread ? wasRejected : connection.hasBroken;
    if (wasUnread && pending.mayRedispatch) {
      pending.wasRedispatched = true;
      pending.onRefusedUnread();
      this.send(pending, pending.mayEndConnections);
    } else if (pending.isReleased) {
      this.#options.onCapacity();
    } else if (error !== undefined) {
      pending.onResponseError(undefined, error);
    }
    this.#sendWaiting();
  }

  onEnded(connection: Http2Connection): void {
    this.#all.delete(connection);
    this.#sendWaiting();
    this.#updateCapacity();
  }

  #resend(all: Iterable<PooledSend>): void {
    for (const pending of all) {
      pending.pool = this;
      this.send(pending, pending.needsUnshared);
    }
  }

  #sendOverHttp1(pending: PooledSend, fresh: boolean): void {
    pending.fallBackToHttp1();
    this.#options.http1.send(pending, fresh);
  }

  #sendUnshared(pending: PooledSend, fresh: boolean): void {
    pending.pool = this.#unshared;
    pending.needsUnshared = fresh;
    this.#unshared?.send(pending, false);
  }

  /**
   * Sends it over a connection that takes it. If only its body finds no room on those, it waits for the next connection, or shares
   * none if there may be no more. It shares none either if there may be no more, and those that there are may be dead.
   * @param count how many requests need one
   * @returns false if it can only wait: for a stream, or where it waits already
   */
  #trySend(pending: PooledSend, count: number): boolean {
    const { connection, retiring, lacksRoom } = chooseConnection(this.#all, this.#takesRequests, pending.request.body);
    const needsRoom = lacksRoom && this.#isShared;
    const isOpening = connection === undefined && this.#openings.provide(pending, this.#isShared ? 1 : count);
    const isUnfit = retiring === undefined ? needsRoom : retiring.isSuspect && this.#isShared;
    const leaves = connection === undefined && !isOpening && isUnfit;
    const chosen = connection ?? (isOpening || leaves ? undefined : retiring);
    if (chosen === undefined && !leaves && (!needsRoom || pending.waitsForRoom)) return false;
    this.#waiting.remove(pending);
    if (chosen !== undefined) {
      this.#unsharedQueue?.onServed(pending, chosen);
      chosen.send(pending);
    } else if (leaves) {
      pending.isDisplaced = retiring !== undefined;
      this.#sendUnshared(pending, false);
    } else this.#waiting.pushForRoom(pending);
    return true;
  }

  /** Those that left, and wait, because all connections might be dead, return when one is not. */
  #recall(unshared: Http2ConnectionPool): void {
    const queue = unshared.#unsharedQueue;
    if (queue === undefined || queue.displaced === 0) return;
    const { connection } = chooseConnection(this.#all, this.#takesRequests, null);
    if (connection !== undefined || this.#openings.isPossible) this.#resend(queue.takeDisplaced());
  }

  /** Counts the requests on connections that take no more, besides those that others can take. */
  #updateCapacity(): void {
    const expected = this.#usesHttp1 || this.#sharing.isPaused ? undefined : this.#expectedStreams;
    const capacity = countCapacity(this.#all, this.#options.maxConnections, expected, this.#takesRequests);
    if (capacity === this.#capacity || this.#isDestroyed) return;
    this.#capacity = capacity;
    this.#options.onCapacityChange(capacity);
  }

  #sendWaiting(): void {
    if (this.#unshared !== undefined) this.#recall(this.#unshared);
    for (const queue of [this.#waiting.forRoom, this.#waiting.forStream]) {
      for (let next = queue.head; next !== undefined && this.#trySend(next, queue.length); ) next = queue.head;
    }
  }

  #closeIfIdle(connection: Http2Connection): void {
    if (connection.isIdle && (connection.shouldRetire || !this.#isCurrentAddress(connection))) connection.destroy();
  }

  readonly #takesRequests = (connection: Http2Connection): boolean =>
    !connection.isClosing && this.#isCurrentAddress(connection);

  #isCurrentAddress({ address }: Http2Connection): boolean {
    return address === undefined || this.#options.isCurrentAddress(address);
  }
}
