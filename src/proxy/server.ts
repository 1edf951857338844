import type { Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { Agent } from 'undici';
import type { Address } from '../config/address.ts';
import type { RequestRecord } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';
import { addressOf, clientAddress } from './address.ts';
import type { ProxyContext } from './context.ts';
import { isLoop, isUsableRequestId } from './headers.ts';
import { findFault, Inbound } from './inbound.ts';
import { Life } from './life.ts';
import type { Snapshot } from './plan.ts';
import type { Problem } from './problem.ts';
import { fault } from './problem.ts';
import { endAnswer, writeProblem, writeRawProblem } from './respond.ts';

export interface FrontDoor {
  /** How long a client may take to send its headers. */
  readonly headersTimeout: Millis;
  readonly maxConnections: number;
}

export interface ProxyOptions {
  readonly context: Omit<ProxyContext, 'isDraining'>;
  readonly frontDoor: FrontDoor;
  /** The config as it is now: each exchange takes the snapshot of its arrival, and keeps it. */
  readonly snapshot: () => Snapshot;
  /** Unique among processes: in Via, and in request ids. */
  readonly instance: string;
}

const KEEP_ALIVE: Millis = 72_000;
/** Node looks for late headers only every 30 s unless told otherwise. */
const CONNECTIONS_CHECK: Millis = 1000;

/** The proxy: a Fastify server whose one route is @fastify/http-proxy's, with our own exchange as its handler. */
export class Proxy {
  readonly #options: ProxyOptions;
  readonly #context: ProxyContext;
  readonly #lives = new Set<Life>();
  readonly #app: FastifyInstance;
  #requests = 0;
  /** Set once it goes away: nothing goes on for longer. */
  #drainBy: Millis | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#context = {
      ...options.context,
      isDraining: () => this.#drainBy !== undefined,
    };
    this.#app = this.#build();
  }

  get inFlight(): number {
    return this.#lives.size;
  }

  /** @throws the error of listen(2), with its code */
  async listen(address: Address): Promise<string> {
    if (address.kind === 'unix') return this.#app.listen({ path: address.path });
    return this.#app.listen({ host: address.host, port: address.port });
  }

  /** Takes no new connections, and ends each one with the response it is at. Requests in flight go on. */
  drain(by: Millis): void {
    this.#drainBy = by;
    for (const life of this.#lives) life.drive.drain(by);
    this.#app.server.close();
    this.#app.server.closeIdleConnections();
  }

  /** Ends what is left, at once. */
  async close(): Promise<void> {
    this.#app.server.closeAllConnections();
    await this.#app.close();
    this.#context.gateTimer.stop();
  }

  #build(): FastifyInstance {
    const app = Fastify({
      logger: false,
      trustProxy: false, // ours: see address.ts
      serverFactory: (handler) => this.#createServer(handler),
      clientErrorHandler: (error, socket) => this.#refuseMalformed(error, socket),
    });
    // Never used: our attempts go through pools of our own. Without one of its own the plug-in opens the global one.
    const unused = new Agent();
    app.addHook('onClose', async () => unused.close());
    void app.register(httpProxy, {
      upstream: '',
      replyOptions: { getUpstream: () => 'http://tidegate.invalid' },
      undici: unused,
      httpMethods: ['GET'],
      disableRequestLogging: true,
      handler: (request: FastifyRequest, reply) => {
        reply.hijack();
        this.#handle(request.raw, reply.raw);
      },
    });
    return app;
  }

  #createServer(handler: (request: Inbound, response: ServerResponse) => void): Server {
    const { frontDoor } = this.#options;
    const receive = (request: Inbound, response: ServerResponse): void => {
      request.mask();
      handler(request, response);
    };
    const server = createServer(
      {
        IncomingMessage: Inbound,
        headersTimeout: frontDoor.headersTimeout,
        requestTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE,
        connectionsCheckingInterval: CONNECTIONS_CHECK,
        requireHostHeader: false, // Node's own 400 says nothing: see inbound.ts
        maxHeaderSize: 32 * 1024,
        noDelay: true,
      },
      receive,
    );
    server.maxConnections = frontDoor.maxConnections;
    server.on('checkContinue', (request: Inbound, response: ServerResponse) => {
      request.expectsContinue = true;
      receive(request, response);
    });
    server.on('checkExpectation', (request: Inbound, response: ServerResponse) => {
      request.mask();
      this.#refuse(request, response, fault(417, 'Expectation failed', 'Only 100-continue is understood.', 'expect'));
    });
    server.on('connect', (_: Inbound, socket: Duplex) => {
      writeRawProblem(socket, fault(405, 'Method not allowed', 'This is no forward proxy.', 'connect'));
    });
    return server;
  }

  #handle(raw: unknown, response: ServerResponse): void {
    // Fastify's types do not know our subclass; the server above makes no other.
    if (!(raw instanceof Inbound)) throw new TypeError('a request of another server');
    const request = raw;
    const found = findFault(request);
    if (found !== undefined) {
      return this.#refuse(request, response, fault(400, 'Bad request', `The request has ${found}.`, 'bad_request'));
    }
    if (isLoop(request.headers.via, this.#context.via)) {
      return this.#refuse(request, response, fault(508, 'Loop detected', 'This request has been here before.', 'loop'));
    }
    const snapshot = this.#options.snapshot();
    const route = snapshot.router.find(request.verb, request.headers.host, request.path);
    if (route === undefined) {
      return this.#refuse(request, response, fault(404, 'Not found', 'No route leads there.', 'no_route'));
    }
    const peer = addressOf(request.socket.remoteAddress);
    const client = snapshot.identify(request, clientAddress(request, peer, snapshot.trusts));
    const requestId = this.#nextId();
    const given = request.headers['x-request-id'];
    const xRequestId = typeof given === 'string' && isUsableRequestId(given) ? given : requestId;
    const arrival = { request, response, route, snapshot, client, peer, requestId, xRequestId };
    const life = new Life(this.#context, arrival, (ended) => this.#lives.delete(ended));
    this.#lives.add(life);
    if (this.#drainBy !== undefined) life.drive.drain(this.#drainBy);
    life.start();
  }

  /** An answer to what never became an exchange. It is told of all the same. */
  #refuse(request: Inbound, response: ServerResponse, problem: Problem): void {
    const { via, clock, listen } = this.#context;
    const since = clock.now();
    const requestId = this.#nextId();
    const close = this.#drainBy !== undefined || (request.hasBody && !request.readableEnded);
    listen({ type: 'arrived', route: NO_ROUTE });
    response.on('close', () => {
      const took = clock.now() - since;
      listen({ type: 'done', record: recordRefused(request, problem, requestId, took) });
    });
    writeProblem(response, problem, { requestId, via, retryAfter: undefined, attempts: 0, close });
    endAnswer(response, request);
  }

  /** What the parser gave up on. Where an earlier request still waits on this connection, an answer would pass for its own. */
  #refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
    for (const life of this.#lives) if (life.awaitsAnswerOn(socket)) return void socket.destroy();
    writeRawProblem(socket, problemOfParser(error));
  }

  #nextId(): string {
    this.#requests += 1;
    return `${this.#options.instance}-${this.#requests.toString(36)}`;
  }
}

/** What metrics call the route of a request that has none. */
const NO_ROUTE = '(none)';

function recordRefused(request: Inbound, problem: Problem, id: string, took: Millis): RequestRecord {
  return {
    id,
    route: NO_ROUTE,
    upstream: '',
    method: request.verb,
    // Of another origin nothing is kept: it may carry a password.
    path: request.target.startsWith('/') ? request.path : '(absolute)',
    client: '',
    status: problem.status,
    outcome: 'refused',
    reason: problem.reason,
    attempts: 0,
    queued: 0,
    slept: 0,
    toHead: 0,
    took,
    retryAfter: undefined,
    cut: false,
  };
}

/** What the parser gave up on. */
function problemOfParser(error: NodeJS.ErrnoException): Problem {
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    return fault(431, 'Headers too large', 'The headers are larger than 32 KiB.', 'headers_too_large');
  }
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return fault(408, 'Request timeout', 'The headers did not come in time.', 'headers_timeout');
  }
  return fault(400, 'Bad request', 'This is not HTTP/1.1.', 'malformed');
}
