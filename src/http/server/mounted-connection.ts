/**
 * Connections of a host program's server that carry requests of a mounted proxy. Node and the program respond to unreadable bytes
 * and to timeouts on the connection itself, whatever is in progress on it: a client would take a plain 400 or 408 for the response to
 * a write that the upstream acts on.
 */
import type { ServerResponse } from 'node:http';
import { Server as HttpServer } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import { Socket } from 'node:net';
import { UPLOAD_TIMEOUT_PROBLEMS } from '../response/problem-details.ts';
import type { Problem } from '../response/problem.ts';
import { lingeringClose } from './end-response.ts';
import type { MountedRequest } from './mounted-request.ts';
import { MALFORMED_REQUEST, problemForParseError } from './parse-error-problem.ts';

interface Exchange {
  readonly request: MountedRequest;
  readonly response: ServerResponse;
}

const connections = new WeakMap<Socket, MountedConnection>();
const guardedServers = new WeakSet<HttpServer | HttpsServer>();

/** One connection, as far as the proxy is concerned. */
export class MountedConnection {
  readonly #socket: Socket;
  /** In the order of their arrival. The last one may have its whole response, while its body still arrives. */
  #exchanges: readonly Exchange[] = [];
  /** Why nothing more can be read. */
  #failure: NodeJS.ErrnoException | undefined;
  /** The failure was not passed on to the program, or not yet. */
  #isPostponed = false;
  /** The program uses the connection for another protocol. */
  #isUpgraded = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Also guards the server of the connection: a Fastify that listens at several addresses has one for each (`multipleBindings`). */
  static of(socket: Socket): MountedConnection {
    let connection = connections.get(socket);
    if (connection === undefined) {
      connection = new MountedConnection(socket);
      connections.set(socket, connection);
      const server: unknown = Reflect.get(socket, 'server');
      if (server instanceof HttpServer || server instanceof HttpsServer) guardServer(server);
    }
    return connection;
  }

  /** Whether the program has responded, or has ended the connection, while its hooks ran: the request must not be sent. */
  isOver(response: ServerResponse): boolean {
    if (response.closed || response.headersSent || response.writableEnded || this.#isUpgraded) return true;
    // Requests that Fastify injects have neither.
    const socket: Partial<Pick<Socket, 'destroyed' | 'writable'>> = this.#socket;
    return socket.destroyed === true || socket.writable === false;
  }

  /** Why a request must not be sent although no response was sent: the program may respond to the failure at any time. */
  get problem(): Problem | undefined {
    return this.#failure && (problemFor(this.#failure) ?? MALFORMED_REQUEST);
  }

  /** From here on the program's listeners respond to nothing on this connection until the response is complete. */
  add(request: MountedRequest, response: ServerResponse): void {
    this.#exchanges = [...this.#unfinished(), { request, response }];
    response.on('close', this.#forget);
  }

  /** @returns false if the program has to respond */
  onError(error: NodeJS.ErrnoException, passOn: () => void): boolean {
    if (this.#isPostponed) return true; // each further read fails as well
    this.#failure = error;
    const last = this.#unfinished().at(-1);
    if (last === undefined || this.#socket.destroyed) return false;
    this.#isPostponed = true;
    this.#socket.once('close', passOn);
    this.#closeAfter(last, error);
    return true;
  }

  /** @returns false if the program has to respond */
  onTimeout(): boolean {
    return this.#isResponding();
  }

  /** The program is about to use the connection for another protocol. @returns false if it may */
  onUpgrade(): boolean {
    if (!this.#isResponding()) {
      this.#isUpgraded = true;
      return false;
    }
    this.#socket.destroy();
    return true;
  }

  #closeAfter({ request, response }: Exchange, error: NodeJS.ErrnoException): void {
    const socket = this.#socket;
    const problem = problemFor(error);
    const close = (): void => lingeringClose(socket);
    // As Node does for a client that ends its side, which it no longer notices.
    socket.once('end', () => socket.end());
    if (problem === undefined) return void socket.end();
    socket.destroySoon = close; // Node calls it after the last response
    response.shouldKeepAlive = false;
    // The parser reads one request after another: the error is in the body of this one unless that is complete.
    if (!request.complete) request.bodyListener?.onMalformed(problem);
    if (response.closed) close();
    else response.once('close', close);
  }

  #isResponding(): boolean {
    return this.#exchanges.some(({ response }) => !response.closed);
  }

  #unfinished(): readonly Exchange[] {
    return this.#exchanges.filter(({ request, response }) => !response.closed || !request.complete);
  }

  readonly #forget = (): void => {
    this.#exchanges = this.#unfinished();
  };
}

/** Undefined if the connection broke, or the client closed it in the middle of a message. */
function problemFor(error: NodeJS.ErrnoException): Problem | undefined {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? UPLOAD_TIMEOUT_PROBLEMS.slow : problemForParseError(error);
}

/**
 * Keeps the listeners of a server from responding on connections with a response of the proxy in progress. `emit` is replaced, because
 * no listener of an event can prevent that others are called.
 */
export function guardServer(server: HttpServer | HttpsServer): void {
  if (guardedServers.has(server)) return;
  guardedServers.add(server);
  const emit = server.emit.bind(server);
  server.emit = (event: string | symbol, ...values: unknown[]): boolean => {
    const passOn = (): boolean => Reflect.apply(emit, server, [event, ...values]) === true;
    const [first, second] = values;
    // Node 24.21 emits these in _http_server.js, with the socket and, except for `timeout`, one value before it.
    switch (event) {
      case 'clientError':
        if (!(first instanceof Error && second instanceof Socket)) return passOn();
        return MountedConnection.of(second).onError(first, passOn) || passOn();
      case 'timeout':
        // Without a listener Node closes the connection, and writes nothing.
        if (!(first instanceof Socket) || server.listenerCount(event) === 0) return passOn();
        return MountedConnection.of(first).onTimeout() || passOn();
      case 'upgrade':
      case 'connect':
        return (second instanceof Socket && MountedConnection.of(second).onUpgrade()) || passOn();
      default:
        return passOn();
    }
  };
}
