import type { Dispatcher } from 'undici';
import type { Ticket } from '../../core/admission/ticket.ts';
import type { LinkedItem } from '../../core/collections/linked-queue.ts';
import { StreamingBody } from '../request/streaming-body.ts';
import { withoutHeader } from '../headers/raw-headers.ts';
import type { ResponseVersion } from '../undici/parser-patches.ts';
import type { DispatchRequest } from './dispatch-request.ts';

/** The connections to one endpoint. */
export interface EndpointConnections {
  /** @param needsFresh a connection is needed that carried no request before, or over HTTP/2 carries no other one */
  send(send: PooledSend, needsFresh: boolean): void;
  /** The send is over: its connection is reused or closed. */
  release(send: PooledSend): void;
  /** Whether a connection is open that may carry requests now or later. */
  readonly hasOpenConnection: boolean;
  /** The endpoint's name no longer resolves to some address: connections to it take no new request. */
  dropStaleAddresses(): void;
  destroy(): Promise<void>;
}

/** What writes a request: its HTTP/1.1 connection, or its stream of HTTP/2. */
export interface RequestWriter {
  /** Nothing of the request waits in this process, its end included. */
  readonly isFlushed: boolean;
  /** The request was reset before a byte of it was written, and none will be. */
  readonly isUnwritten: boolean;
  /** A reset shows that the request is unwritten only if it waits a millisecond. */
  readonly isResetBusy: boolean;
}

/** What a send knows of the HTTP/1.1 connection that it uses. */
export interface AssignedConnection {
  /** Responses it has delivered since it was opened. */
  readonly responsesServed: number;
}

/** The ticket of a request: whose share of the connections it uses. */
export type Sender = Pick<Ticket, 'fairnessKey' | 'client' | 'classWeight'>;

/** One request on its way to one endpoint, as connection pools see it. It is also the handler that undici dispatches to. */
export abstract class PooledSend implements LinkedItem<PooledSend>, Dispatcher.DispatchHandler {
  request: DispatchRequest;
  sender: Sender | undefined = undefined;
  /** HTTP version of the response, once its head has arrived. */
  responseVersion: ResponseVersion = '1.1';
  /** The pool that it was given to. */
  pool: EndpointConnections | undefined = undefined;
  /** Its HTTP/1.1 connection; undefined while it waits for one, and over HTTP/2. */
  connection: AssignedConnection | undefined = undefined;
  /** Undefined while it waits for a connection. */
  writer: RequestWriter | undefined = undefined;
  /** Over HTTP/2: it has a stream of a shared connection. */
  hasStream = false;
  /** HTTP/2 was offered, and the endpoint chose HTTP/1.1. */
  isHttp1Fallback = false;
  /** A connection was closed before it read the request, so the request moved to another one. */
  wasRedispatched = false;
  /** Over HTTP/2: others may not share its connection, because its last one ended and it may be the reason. */
  needsUnshared = false;
  /** Over HTTP/2: see `WaitingSends.forRoom`. */
  waitsForRoom = false;
  /** Over HTTP/2: it may use an unshared connection because all shared ones may be dead. */
  isDisplaced = false;
  /** Over HTTP/2: its ordinal in the queue for an unshared connection. */
  arrival = 0;
  /** Its HTTP/2 connection ended before its response, and it may be the reason. */
  mayEndConnections = false;
  /** All connections were busy. If it gets none in time, the upstream is not at fault. */
  waitedForConnection = false;
  /** It ended because its client has gone or has stalled: the upstream would have taken longer. */
  isCutByClient = false;
  /** It has given up its connection, and needs no other. */
  isReleased = false;
  previous: PooledSend | undefined = undefined;
  next: PooledSend | undefined = undefined;

  constructor(request: DispatchRequest) {
    this.request = request;
  }

  /** A part of the request is written, and the rest waits here, so the upstream does not have all of it. */
  get isPartlyWritten(): boolean {
    return this.writer?.isFlushed === false;
  }

  /** See `RequestWriter`. */
  get isResetBusy(): boolean {
    return this.writer?.isResetBusy === true;
  }

  /** A request that was not read can be sent again unchanged; once. */
  get mayRedispatch(): boolean {
    const { body } = this.request;
    return !this.wasRedispatched && !this.isReleased && !(body instanceof StreamingBody && body.hasStarted);
  }

  /** True once bytes of the request may have reached the upstream. */
  abstract get sent(): boolean;
  /** The whole response has arrived: the connection can be reused. */
  abstract get isComplete(): boolean;
  /** It reports nothing more. */
  abstract get isOver(): boolean;

  /** @throws Error when it must not be sent any more */
  abstract onRequestStart(controller: Dispatcher.DispatchController): void;
  /** The connection was closed before the upstream read the request. Another connection gets it: that is no retry. */
  abstract onRefusedUnread(): void;
  abstract onBodySent(): void;
  /** The first byte of a response has arrived. */
  abstract onResponseStarted(): void;
  abstract onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: unknown,
    reasonPhrase?: string,
  ): void;
  abstract onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void;
  abstract onResponseEnd(controller: Dispatcher.DispatchController): void;
  abstract onResponseError(controller: unknown, error: Error): void;

  /** Returns its connection to the pool, or leaves the pool's queue. */
  release(): void {
    this.isReleased = true;
    this.pool?.release(this);
  }

  /** Sends over HTTP/1.1 a request whose headers were written for HTTP/2. */
  fallBackToHttp1(): void {
    this.isHttp1Fallback = true;
    const { headers } = this.request;
    // `TE` without `Connection: TE` is legal in HTTP/2 only: see forward-headers.ts.
    if (!headers.includes('te')) return;
    this.request = { ...this.request, headers: withoutHeader(headers, 'te') };
  }
}
