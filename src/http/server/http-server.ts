import type { Server, ServerOptions } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ServerTls } from '../tls/server-certificate.ts';
import { watchCertificate, readCertificate } from '../tls/server-certificate.ts';
import { parseExpect } from '../headers/expect-header.ts';
import { Http1ServerResponse } from './http1-server-response.ts';
import { chooseProtocol, separateHttp2 } from './separate-http2.ts';
import { Http2ServerSessions } from './http2-server-sessions.ts';
import type { HttpServerRequest } from './server-request.ts';
import { Http1ServerRequest } from './http1-server-request.ts';
import type { HttpServerResponse } from './server-response.ts';
import { isWebSocketUpgrade } from './upgrade.ts';

export interface HttpServerOptions {
  /** How long a client may take to send its headers. */
  readonly headersTimeout: Millis;
  readonly maxConnections: number;
  /** Undefined: plain HTTP. */
  readonly tls: ServerTls | undefined;
  /** Offer HTTP/2 beside HTTP/1.1. */
  readonly http2: boolean;
  /**
   * Takes connections that use HTTP/2 without having agreed on it, or over TLS offer nothing else. Undefined: they get an error.
   */
  readonly acceptHttp2?: ((connection: Duplex) => void) | undefined;
  /** Encrypts TLS session tickets; undefined: keys of this process. */
  readonly ticketKeys?: Buffer | undefined;
  /** The certificate files changed. @param problem why they cannot be used: the previous certificate stays in use */
  readonly onCertificate: (problem?: Error) => void;
}

/** Handles what arrives. */
export interface HttpServerHandlers {
  /** Over HTTP/1.1: through Fastify. */
  request(request: Http1ServerRequest, response: Http1ServerResponse): void;
  /** Over HTTP/2. */
  stream(request: HttpServerRequest, response: HttpServerResponse): void;
  upgrade(request: Http1ServerRequest, socket: Duplex, head: Buffer): void;
  expectation(request: Http1ServerRequest, response: Http1ServerResponse): void;
  connect(socket: Socket): void;
}

export const KEEP_ALIVE: Millis = 72_000;
/** Node checks for late headers every 30 s by default. */
const TIMEOUT_CHECK_INTERVAL: Millis = 1000;
const MAX_HEADER_SIZE = 32 * 1024;
/** Idle time after which the kernel probes a connection. */
const TCP_KEEP_ALIVE: Millis = 60_000;
/** For the last bytes of connections without requests. */
const FLUSH_TIMEOUT: Millis = 1000;

/** Accepts HTTP/1.1, plain or over TLS, and HTTP/2 over TLS where both sides negotiate it. */
export class HttpServer {
  readonly server: Server;
  readonly #sessions: Http2ServerSessions | undefined;
  readonly #maxConnections: number;
  #droppedConnections = 0;
  /** All connections: Node does not track those that are upgraded, use HTTP/2 or are in the TLS handshake. */
  readonly #connections = new Set<Socket>();

  /** @throws the error of node:fs or node:tls, when the certificate cannot be used */
  constructor(options: HttpServerOptions, handlers: HttpServerHandlers) {
    this.server = createNodeServer(options, handlers);
    if (options.acceptHttp2 !== undefined) separateHttp2(this.server, options.acceptHttp2, options.headersTimeout);
    this.#maxConnections = options.maxConnections;
    this.server.maxConnections = options.maxConnections;
    this.server.on('drop', () => {
      this.#droppedConnections += 1;
    });
    this.server.maxHeadersCount = 0; // counted in validate-request.ts: Node may drop headers beyond a limit, Content-Length among them
    // Node 24.21 chooses the event by a pattern that finds 100-continue within other words and accepts an empty Expect.
    const receiveExpecting = (request: Http1ServerRequest, response: Http1ServerResponse): void => {
      const expectation = parseExpect(request.headers.expect);
      request.expectsContinue = expectation === 'continue';
      if (expectation === 'other') handlers.expectation(request, response);
      else handlers.request(request, response);
    };
    this.server.on('checkContinue', receiveExpecting);
    this.server.on('checkExpectation', receiveExpecting);
    this.server.on('connect', (_: Http1ServerRequest, socket: Socket) => handlers.connect(socket));
    this.server.on('upgrade', (request: Http1ServerRequest, socket, head) => handlers.upgrade(request, socket, head));
    this.server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    if (options.tls !== undefined && options.http2) this.#sessions = serveHttp2(this.server, handlers);
  }

  get bound(): ResourceBound {
    return {
      name: 'connections',
      used: this.#connections.size / this.#maxConnections,
      reached: this.#droppedConnections,
    };
  }

  drain(): void {
    this.server.close();
    this.server.closeIdleConnections();
    this.#sessions?.drain();
  }

  /**
   * Resolves when everything written has been sent. Over HTTP/1.1 it has when the response ends; an HTTP/2 stream ends before its
   * connection has sent it.
   */
  async flush(): Promise<void> {
    await this.#sessions?.flush(FLUSH_TIMEOUT);
  }

  destroy(): void {
    for (const socket of this.#connections) socket.destroy();
  }
}

function createNodeServer(
  { headersTimeout, tls, http2, acceptHttp2, ticketKeys, onCertificate }: HttpServerOptions,
  handlers: HttpServerHandlers,
): Server {
  const options: ServerOptions<typeof Http1ServerRequest, typeof Http1ServerResponse> = {
    IncomingMessage: Http1ServerRequest,
    ServerResponse: Http1ServerResponse,
    headersTimeout,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
    requireHostHeader: false, // Node's own 400 has no body: see validate-request.ts
    maxHeaderSize: MAX_HEADER_SIZE,
    optimizeEmptyRequests: true, // a request without a body emits no stream events: see `hasBody`
    noDelay: true,
    keepAlive: true, // detects a client that has vanished while nothing is sent
    keepAliveInitialDelay: TCP_KEEP_ALIVE,
    // Other upgrades are ignored, h2c above all, which Node would hand over as well.
    shouldUpgradeCallback: (request) => {
      const isAccepted = isWebSocketUpgrade(request);
      request.endsConnection = !isAccepted;
      return isAccepted;
    },
  };
  const receive = (request: Http1ServerRequest, response: Http1ServerResponse): void =>
    handlers.request(request, response);
  if (tls === undefined) return createServer(options, receive);
  const server = createTlsServer(
    {
      ...options,
      ...readCertificate(tls),
      // A client without a certificate, or with another one, gets a 401 that says so, not a failed handshake: certificate-check.ts.
      ...(tls.clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: false }),
      ...(ticketKeys === undefined ? {} : { ticketKeys }),
      handshakeTimeout: headersTimeout,
      ...(acceptHttp2 === undefined
        ? { ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'] }
        : { ALPNCallback: chooseProtocol }),
    },
    receive,
  );
  // A client whose TLS handshake failed cannot get a response; Node would respond in plain text.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (_, socket) => socket.destroy());
  server.on('close', watchCertificate(server, tls, onCertificate));
  return server;
}

/** Passes connections that negotiated HTTP/2 to the sessions, and leaves the others to Node's HTTP/1.1 server. */
function serveHttp2(server: Server, handlers: HttpServerHandlers): Http2ServerSessions {
  const sessions = new Http2ServerSessions({ idle: KEEP_ALIVE, maxHeaderSize: MAX_HEADER_SIZE }, (request, response) =>
    handlers.stream(request, response),
  );
  // These listeners of node:https start its HTTP/1.1 parser.
  const http1Listeners = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') return sessions.accept(socket);
    for (const listener of http1Listeners) Reflect.apply(listener, server, [socket]);
  });
  return sessions;
}
