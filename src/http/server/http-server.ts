import type { Server, ServerOptions } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ListenTls } from '../tls/server-certificate.ts';
import { followCertificate, readCertificate } from '../tls/server-certificate.ts';
import { readExpectation } from '../headers/expect-header.ts';
import { Http1Outbound } from './http1-server-response.ts';
import { Http2Sessions } from './http2-server-sessions.ts';
import type { Inbound } from './server-request.ts';
import { Http1Inbound } from './server-request.ts';
import type { Outbound } from './server-response.ts';
import { asksForWebSocket } from './upgrade.ts';

export interface FrontDoorOptions {
  /** How long a client may take to send its headers. */
  readonly headersTimeout: Millis;
  readonly maxConnections: number;
  /** Undefined: plain HTTP. */
  readonly tls: ListenTls | undefined;
  /** Offer HTTP/2 beside HTTP/1.1. */
  readonly http2: boolean;
  /** What tickets of sessions are sealed with; of this process's own unless given. */
  readonly ticketKeys?: Buffer | undefined;
  /** The files of the certificate have changed; with what is wrong with them, when the one before is shown on. */
  readonly onCertificate: (problem?: Error) => void;
}

/** What becomes of what comes in. */
export interface Receiver {
  /** Over HTTP/1.1: through Fastify. */
  request(request: Http1Inbound, response: Http1Outbound): void;
  /** Over HTTP/2. */
  stream(request: Inbound, response: Outbound): void;
  upgrade(request: Http1Inbound, socket: Duplex, head: Buffer): void;
  expectation(request: Http1Inbound, response: Http1Outbound): void;
  connect(socket: Socket): void;
}

const KEEP_ALIVE: Millis = 72_000;
/** Node looks for late headers only every 30 s unless told otherwise. */
const CONNECTIONS_CHECK: Millis = 1000;
const MAX_HEADER_SIZE = 32 * 1024;
/** Quiet for so long, a connection is probed by the kernel. */
const TCP_KEEP_ALIVE: Millis = 60_000;
/** For the last bytes of connections that nothing is asked on any more. */
const SETTLE: Millis = 1000;

/** Where clients come in: over HTTP/1.1, plain or by TLS; and by TLS over HTTP/2, where both sides want it. */
export class FrontDoor {
  readonly server: Server;
  readonly #sessions: Http2Sessions | undefined;
  readonly #maxConnections: number;
  #dropped = 0;
  /** All of them: Node does not know those that are upgraded, speak HTTP/2 or are still agreeing on TLS. */
  readonly #connections = new Set<Socket>();

  /** @throws the error of node:fs or node:tls, when the certificate cannot be used */
  constructor(options: FrontDoorOptions, receiver: Receiver) {
    this.server = open(options, receiver);
    this.#maxConnections = options.maxConnections;
    this.server.maxConnections = options.maxConnections;
    this.server.on('drop', () => {
      this.#dropped += 1;
    });
    this.server.maxHeadersCount = 0; // counted in server-request.ts: Node may drop what is beyond, and with it the length of the body
    // Node 24.21 tells the two apart by a pattern that finds 100-continue within other words, and takes an empty Expect for one.
    const receiveExpecting = (request: Http1Inbound, response: Http1Outbound): void => {
      const expectation = readExpectation(request.headers.expect);
      request.expectsContinue = expectation === 'continue';
      if (expectation === 'other') receiver.expectation(request, response);
      else receiver.request(request, response);
    };
    this.server.on('checkContinue', receiveExpecting);
    this.server.on('checkExpectation', receiveExpecting);
    this.server.on('connect', (_: Http1Inbound, socket: Socket) => receiver.connect(socket));
    this.server.on('upgrade', (request: Http1Inbound, socket, head) => receiver.upgrade(request, socket, head));
    this.server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    if (options.tls !== undefined && options.http2) this.#sessions = divert(this.server, receiver);
  }

  get bound(): Bound {
    return { name: 'connections', used: this.#connections.size / this.#maxConnections, reached: this.#dropped };
  }

  /** Takes no new connections, and ends each one with the response it is at. */
  drain(): void {
    this.server.close();
    this.server.closeIdleConnections();
    this.#sessions?.drain();
  }

  /**
   * Resolves when what was written has gone out. Of HTTP/1.1 it has when the answer has ended; a stream of HTTP/2 ends
   * before its connection has carried it.
   */
  async settle(): Promise<void> {
    await this.#sessions?.settle(SETTLE);
  }

  /** Ends what is left, at once. */
  destroy(): void {
    for (const socket of this.#connections) socket.destroy();
  }
}

function open({ headersTimeout, tls, http2, ticketKeys, onCertificate }: FrontDoorOptions, receiver: Receiver): Server {
  const options: ServerOptions<typeof Http1Inbound, typeof Http1Outbound> = {
    IncomingMessage: Http1Inbound,
    ServerResponse: Http1Outbound,
    headersTimeout,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE,
    connectionsCheckingInterval: CONNECTIONS_CHECK,
    requireHostHeader: false, // Node's own 400 says nothing: see server-request.ts
    maxHeaderSize: MAX_HEADER_SIZE,
    optimizeEmptyRequests: true, // one without a body is no stream that begins and ends: see `hasBody`
    noDelay: true,
    keepAlive: true, // a client that has vanished without a word is noticed even while nothing is to be sent
    keepAliveInitialDelay: TCP_KEEP_ALIVE,
    // What is not upgraded is served as if it had not asked; h2c above all, which Node would hand over as well.
    shouldUpgradeCallback: (request) => {
      const isTaken = asksForWebSocket(request);
      request.isLast = !isTaken;
      return isTaken;
    },
  };
  const receive = (request: Http1Inbound, response: Http1Outbound): void => receiver.request(request, response);
  if (tls === undefined) return createServer(options, receive);
  const server = createTlsServer(
    {
      ...options,
      ...readCertificate(tls),
      ...(ticketKeys === undefined ? {} : { ticketKeys }),
      handshakeTimeout: headersTimeout,
      ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
    },
    receive,
  );
  // Nothing can be told to a client with which no TLS came about; Node would have it answered in plain text.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (_, socket) => socket.destroy());
  server.on('close', followCertificate(server, tls, onCertificate));
  return server;
}

/** Connections on which HTTP/2 was agreed go there; HTTP/1.1 is what it is without. */
function divert(server: Server, receiver: Receiver): Http2Sessions {
  const sessions = new Http2Sessions({ idle: KEEP_ALIVE, maxHeaderSize: MAX_HEADER_SIZE }, (request, response) =>
    receiver.stream(request, response),
  );
  // Those of node:https: the parser of HTTP/1.1.
  const parsers = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') return sessions.accept(socket);
    for (const parse of parsers) Reflect.apply(parse, server, [socket]);
  });
  return sessions;
}
