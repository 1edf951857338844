import type { Socket } from 'node:net';
import type { Http1ServerResponse } from './http1-server-response.ts';
import type { Http1ServerRequest } from './http1-server-request.ts';
import type { Problem } from '../response/problem.ts';
import type { CountRequest } from './request-source.ts';
import type { StartQueue } from './start-queue.ts';
import { lingeringClose } from './end-response.ts';
import { dropFurtherRequests } from '../undici/drop-requests.ts';

export type StartRequest = (request: Http1ServerRequest, response: Http1ServerResponse) => void;

/**
 * Writes a problem on a connection whose next bytes cannot be parsed, after all earlier responses.
 * @param request whose body those bytes are, if its head could be parsed
 */
export type RejectUnparsed = (socket: Socket, problem: Problem, request: Http1ServerRequest | undefined) => void;

/** Chooses when requests begin. */
type Starts = Pick<StartQueue, 'mustWait' | 'add' | 'size'>;

/** Requests queued on a connection before it is paused. One read of 64 KiB may bring more. */
const MAX_QUEUED = 16;

/** HTTP/1.1 pipelining: handles the requests of each connection in order, one at a time. */
export class Pipelines {
  readonly #bySocket = new WeakMap<Socket, Pipeline>();
  readonly #rejectUnparsed: RejectUnparsed;
  readonly #count: CountRequest;
  readonly #startQueue: Starts;

  /** @param count for the requests that wait */
  constructor(rejectUnparsed: RejectUnparsed, count: CountRequest, startQueue: Starts) {
    this.#rejectUnparsed = rejectUnparsed;
    this.#count = count;
    this.#startQueue = startQueue;
  }

  /** Connections whose next request begins in this turn of the event loop or in one of the next. */
  get startingCount(): number {
    return this.#startQueue.size;
  }

  /** Queues a request whose head was parsed. @param begin called when its turn comes */
  enqueue(request: Http1ServerRequest, response: Http1ServerResponse, begin: StartRequest): void {
    this.#pipelineOf(request.socket).enqueue(request, response, begin);
  }

  /** Queues a request for which there is no room. @param begin refuses it, when its turn comes */
  refuse(request: Http1ServerRequest, response: Http1ServerResponse, begin: StartRequest): void {
    this.#pipelineOf(request.socket).refuse(request, response, begin);
  }

  /** Nothing that follows on this connection can be parsed. The client gets one problem, whatever else arrives. */
  reject(socket: Socket, problem: Problem): void {
    this.#pipelineOf(socket).reject(problem);
  }

  /**
   * The same for CONNECT, after which Node 24.21 removes its listeners from the socket, even while responses are written to it.
   * Reads and drops the data that the client sends for the tunnel: a client that leaves is noticed only while it is read.
   */
  rejectConnect(socket: Socket, problem: Problem): void {
    const pipeline = this.#pipelineOf(socket);
    socket.on('error', () => socket.destroy()); // an unhandled error would end the process
    socket.on('drain', () => pipeline.onDrain());
    socket.on('end', () => pipeline.onEnd());
    pipeline.reject(problem);
    socket.resume();
  }

  #pipelineOf(socket: Socket): Pipeline {
    let pipeline = this.#bySocket.get(socket);
    if (pipeline === undefined) {
      pipeline = new Pipeline(socket, this.#rejectUnparsed, this.#count, this.#startQueue);
      this.#bySocket.set(socket, pipeline);
    }
    return pipeline;
  }
}

/** A request that waits for earlier responses of its connection, or in the start queue. */
interface QueuedRequest {
  readonly request: Http1ServerRequest;
  readonly response: Http1ServerResponse;
  readonly begin: StartRequest;
  /** See `CountRequest`. */
  readonly uncount: () => void;
}

/**
 * The requests of one connection, handled one after another. RFC 9112 §9.3.2 allows concurrency only for safe requests, and it
 * would let a client have any number in flight.
 */
class Pipeline {
  readonly #socket: Socket;
  readonly #rejectUnparsed: RejectUnparsed;
  readonly #count: CountRequest;
  readonly #startQueue: Starts;
  #request: Http1ServerRequest | undefined;
  #response: Http1ServerResponse | undefined;
  /** A request or a rejection waits for the current response, or in the start queue. */
  #isNextAwaited = false;
  readonly #queue: QueuedRequest[] = [];
  #isPaused = false;
  #rejection: Problem | undefined;
  /** A request that was parsed in part and has not begun. */
  #unfinished: Http1ServerRequest | undefined;
  /** What follows may not be a request: see `Http1ServerRequest.endsConnection`. */
  #isEnding = false;
  /** What follows is dropped, whether it can be parsed or not. */
  #isDropping = false;

  constructor(socket: Socket, rejectUnparsed: RejectUnparsed, count: CountRequest, startQueue: Starts) {
    this.#socket = socket;
    this.#rejectUnparsed = rejectUnparsed;
    this.#count = count;
    this.#startQueue = startQueue;
    socket.once('close', () => this.#dropQueued());
    socket.destroySoon = () => lingeringClose(socket); // Node 24 calls it after the last response
  }

  /** @param isRefused there was no room for it */
  enqueue(request: Http1ServerRequest, response: Http1ServerResponse, begin: StartRequest, isRefused = false): void {
    // The rest of the headers may arrive after a 408, which said that the request was not processed.
    if (this.#rejection !== undefined || this.#isEnding || !this.#socket.writable) return;
    if (request.endsConnection) {
      this.#isEnding = true;
      response.shouldKeepAlive = false;
    }
    const isBusy = this.#isBusy();
    if (!isBusy && !this.#startQueue.mustWait) return this.#start(request, response, begin);
    this.#queue.push({ request, response, begin, uncount: this.#count(request, isRefused) });
    if (isBusy) this.#awaitResponse();
    else {
      this.#isNextAwaited = true;
      this.#startQueue.add(this.#startNext);
    }
    this.#applyReadAhead();
  }

  /**
   * If other requests precede it, it is the last of its connection, and what follows is dropped. So each connection keeps at most
   * one request beyond the bound, and none under way is broken off.
   */
  refuse(request: Http1ServerRequest, response: Http1ServerResponse, begin: StartRequest): void {
    if (this.#isBusy()) {
      if (!dropFurtherRequests(this.#socket)) return void this.#socket.destroy();
      request.endsConnection = true;
      this.#isDropping = true;
    }
    this.enqueue(request, response, begin, true);
  }

  reject(problem: Problem): void {
    if (this.#rejection !== undefined || this.#isDropping || !this.#socket.writable) return;
    this.#rejection = problem;
    const last = this.#queue.at(-1);
    if (last?.request.complete === false) {
      last.request.hideFromRouter(); // as for each request that begins
      this.#unfinished = last.request;
      this.#queue.pop();
      last.uncount();
    }
    // The unparsable bytes belong to the body of the current request, whose handler responds.
    else if (!this.#isNextAwaited && this.#isBusy() && this.#request?.complete === false) {
      return this.#request.bodyListener?.onMalformed(problem);
    }
    if (this.#isBusy()) this.#awaitResponse();
    else this.#rejectUnparsed(this.#socket, problem, this.#unfinished);
  }

  onDrain(): void {
    this.#response?.emit('drain');
  }

  /** The client ended the connection: it counts as disconnected, unless it may be reading its last response. */
  onEnd(): void {
    if (this.#isBusy()) this.#socket.destroy();
  }

  #start(request: Http1ServerRequest, response: Http1ServerResponse, begin: StartRequest): void {
    this.#request = request;
    this.#response = response;
    response.pipeline = this;
    begin(request, response);
  }

  /** Drops references: each scavenge copies what a long-lived connection refers to (docs/performance.md). */
  onWritten(response: Http1ServerResponse): void {
    // Before Node 24.21 this may be called after the next response has begun.
    if (this.#response !== response) return;
    this.#request = undefined;
    this.#response = undefined;
  }

  #isBusy(): boolean {
    const response = this.#response;
    return this.#isNextAwaited || (response !== undefined && !response.closed && !response.writableFinished);
  }

  #awaitResponse(): void {
    if (this.#isNextAwaited) return;
    this.#isNextAwaited = true;
    this.#response?.once('close', this.#onResponseClosed);
  }

  /** Lets other connections run between two requests of one. */
  readonly #onResponseClosed = (): void => {
    this.#startQueue.add(this.#startNext);
  };

  readonly #startNext = (): void => {
    this.#isNextAwaited = false;
    // That was the last response on this connection: queued requests are dropped.
    if (!this.#socket.writable) return this.#dropQueued();
    const next = this.#queue.shift();
    if (next === undefined) {
      if (this.#rejection !== undefined) this.#rejectUnparsed(this.#socket, this.#rejection, this.#unfinished);
      return;
    }
    next.uncount();
    this.#start(next.request, next.response, next.begin);
    if (this.#queue.length > 0 || this.#rejection !== undefined) this.#awaitResponse();
    this.#applyReadAhead();
  };

  #dropQueued(): void {
    for (const { uncount } of this.#queue.splice(0)) uncount();
  }

  /** Pauses after this turn, because Node 24 resumes at the end of each message, and when a body is read. */
  #applyReadAhead(): void {
    if (this.#queue.length > MAX_QUEUED) {
      this.#isPaused = true;
      setImmediate(() => {
        if (this.#isPaused) this.#socket.pause();
      });
    } else if (this.#isPaused) {
      this.#isPaused = false;
      this.#socket.resume();
    }
  }
}
