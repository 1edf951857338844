import type { Socket } from 'node:net';
import type { Http1Outbound } from './http1-server-response.ts';
import type { Http1Inbound } from './server-request.ts';
import type { Problem } from '../response/problem-details.ts';
import { closeInStages } from './write-response.ts';

export type Begin = (request: Http1Inbound, response: Http1Outbound) => void;

/**
 * Says on a connection, when all before has been answered, that what follows cannot be read.
 * @param request whose body that is, where its head could be read
 */
export type Refuse = (socket: Socket, problem: Problem, request: Http1Inbound | undefined) => void;

/** So many requests may wait; then their connection is read no further. What one read brings, 64 KiB, may be more of them. */
const READ_AHEAD = 16;

/** The connections of our clients: what comes on each is answered in its order. */
export class Pipelines {
  readonly #bySocket = new WeakMap<Socket, Pipeline>();
  readonly #refuse: Refuse;
  readonly #queued: Queued = { count: 0 };

  constructor(refuse: Refuse) {
    this.#refuse = refuse;
  }

  /** Requests that have been read and wait for their turn. */
  get waiting(): number {
    return this.#queued.count;
  }

  /** A request whose head has been read: begun when its turn has come. */
  take(request: Http1Inbound, response: Http1Outbound, begin: Begin): void {
    this.#of(request.socket).take(request, response, begin);
  }

  /** Nothing that follows on this connection can be read. Its client is told once, whatever else comes. */
  refuse(socket: Socket, problem: Problem): void {
    this.#of(socket).refuse(problem);
  }

  /**
   * The same for CONNECT, behind which Node 24.21 listens to the socket no more, be answers still written to it or not.
   * What is to go through the tunnel is let go: a client is seen to leave only where it is read.
   */
  refuseConnect(socket: Socket, problem: Problem): void {
    const pipeline = this.#of(socket);
    socket.on('error', () => socket.destroy()); // which would otherwise end the process
    socket.on('drain', () => pipeline.onDrain());
    socket.on('end', () => pipeline.onEnd());
    pipeline.refuse(problem);
    socket.resume();
  }

  #of(socket: Socket): Pipeline {
    let pipeline = this.#bySocket.get(socket);
    if (pipeline === undefined) {
      pipeline = new Pipeline(socket, this.#refuse, this.#queued);
      this.#bySocket.set(socket, pipeline);
    }
    return pipeline;
  }
}

/** Of all connections together. */
interface Queued {
  count: number;
}

/**
 * Its requests go on one after another. At the same time is allowed only where all of them are safe (RFC 9112 §9.3.2),
 * and a client could otherwise have as many in flight as it can write.
 */
class Pipeline {
  readonly #socket: Socket;
  readonly #refuse: Refuse;
  readonly #queued: Queued;
  #request: Http1Inbound | undefined;
  #response: Http1Outbound | undefined;
  /** Something waits for the answer that is under way. */
  #isAwaited = false;
  readonly #waiting: (readonly [Http1Inbound, Http1Outbound, Begin])[] = [];
  #isPaused = false;
  #refusal: Problem | undefined;
  /** Of a request that had been read in part, and had not begun. */
  #unfinished: Http1Inbound | undefined;
  /** What follows is not known to be a request. */
  #hasLast = false;

  constructor(socket: Socket, refuse: Refuse, queued: Queued) {
    this.#socket = socket;
    this.#refuse = refuse;
    this.#queued = queued;
    socket.once('close', () => this.#dropWaiting());
    socket.destroySoon = () => closeInStages(socket); // what Node 24 calls behind the last answer
  }

  take(request: Http1Inbound, response: Http1Outbound, begin: Begin): void {
    // After a 408 the rest of the headers may come all the same: its client has been told that it was not processed.
    if (this.#refusal !== undefined || this.#hasLast || !this.#socket.writable) return;
    if (request.isLast) {
      this.#hasLast = true;
      response.shouldKeepAlive = false;
    }
    if (!this.#isBusy()) return this.#begin(request, response, begin);
    this.#waiting.push([request, response, begin]);
    this.#queued.count += 1;
    this.#awaitAnswer();
    this.#throttle();
  }

  refuse(problem: Problem): void {
    if (this.#refusal !== undefined || !this.#socket.writable) return;
    this.#refusal = problem;
    const last = this.#waiting.at(-1)?.[0];
    if (last?.complete === false) {
      last.mask(); // as each that begins
      this.#unfinished = last;
      this.#waiting.pop();
      this.#queued.count -= 1;
    }
    // Not a next request but the rest of the one that goes on: that one tells of it.
    else if (!this.#isAwaited && this.#isBusy() && this.#request?.complete === false) {
      return this.#request.owner?.onMalformed(problem);
    }
    if (this.#isBusy()) this.#awaitAnswer();
    else this.#refuse(this.#socket, problem, this.#unfinished);
  }

  onDrain(): void {
    this.#response?.emit('drain');
  }

  /** A client that has said all has gone; one that has its last answer is let read it. */
  onEnd(): void {
    if (this.#isBusy()) this.#socket.destroy();
  }

  #begin(request: Http1Inbound, response: Http1Outbound, begin: Begin): void {
    this.#request = request;
    this.#response = response;
    response.pipeline = this;
    begin(request, response);
  }

  /** A connection lives for long: what it keeps of its last request, each scavenge has to copy (docs/performance.md). */
  onWritten(response: Http1Outbound): void {
    // Before Node 24.21 an answer may count as written before it is let go of: the next one has its place by then.
    if (this.#response !== response) return;
    this.#request = undefined;
    this.#response = undefined;
  }

  #isBusy(): boolean {
    const response = this.#response;
    return this.#isAwaited || (response !== undefined && !response.closed && !response.writableFinished);
  }

  #awaitAnswer(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#response?.once('close', this.#onAnswered);
  }

  /** Others have their turn in between, however fast it goes. */
  readonly #onAnswered = (): void => {
    setImmediate(this.#beginNext);
  };

  readonly #beginNext = (): void => {
    this.#isAwaited = false;
    // That was the last answer on this connection: whoever waits behind it has to ask again.
    if (!this.#socket.writable) return this.#dropWaiting();
    const next = this.#waiting.shift();
    if (next !== undefined) this.#queued.count -= 1;
    if (next === undefined) {
      if (this.#refusal !== undefined) this.#refuse(this.#socket, this.#refusal, this.#unfinished);
      return;
    }
    this.#begin(...next);
    if (this.#waiting.length > 0 || this.#refusal !== undefined) this.#awaitAnswer();
    this.#throttle();
  };

  #dropWaiting(): void {
    this.#queued.count -= this.#waiting.length;
    this.#waiting.length = 0;
  }

  /** Pauses behind whatever this turn resumes: Node 24 does at the end of each message, and where a body is read. */
  #throttle(): void {
    if (this.#waiting.length > READ_AHEAD) {
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
