import type { Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { Agent } from 'undici';
import type { Address } from '../config/address.ts';
import type { Millis } from '../policy/types.ts';
import { addressOf, clientAddress } from './address.ts';
import { Connections } from './connections.ts';
import type { ProxyContext } from './context.ts';
import { isLoop, isUsableRequestId } from './headers.ts';
import { findFault, Inbound } from './inbound.ts';
import { Life } from './life.ts';
import type { Snapshot } from './plan.ts';
import type { Problem } from './problem.ts';
import { fault } from './problem.ts';
import { NO_ROUTE, problemOfParser, recordRefused } from './refused.ts';
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
/** Quiet for so long, a connection is probed by the kernel. */
const TCP_KEEP_ALIVE: Millis = 60_000;

/** The proxy: a Fastify server whose one route is @fastify/http-proxy's, with our own exchange as its handler. */
export class Proxy {
  readonly #options: ProxyOptions;
  readonly #context: ProxyContext;
  readonly #lives = new Set<Life>();
  readonly #connections = new Connections((socket, problem) => this.#refuseUnread(socket, problem));
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
    this.#connections.close();
    await this.#app.close();
    this.#context.gateTimer.stop();
  }

  #build(): FastifyInstance {
    const app = Fastify({
      logger: false,
      trustProxy: false, // ours: see address.ts
      serverFactory: (handler) => this.#createServer(handler),
      clientErrorHandler: (error, socket) => this.#onClientError(error, socket),
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
    const begin = (request: Inbound, response: ServerResponse): void => {
      request.mask();
      handler(request, response);
    };
    const receive = (request: Inbound, response: ServerResponse): void => {
      this.#connections.take(request, response, begin);
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
        keepAlive: true, // a client that has vanished without a word is noticed even while nothing is to be sent
        keepAliveInitialDelay: TCP_KEEP_ALIVE,
      },
      receive,
    );
    server.maxConnections = frontDoor.maxConnections;
    server.maxHeadersCount = 0; // counted in inbound.ts: Node may drop what is beyond, and with it the length of the body
    server.on('checkContinue', (request: Inbound, response: ServerResponse) => {
      request.expectsContinue = true;
      receive(request, response);
    });
    server.on('checkExpectation', (request: Inbound, response: ServerResponse) => {
      request.expectsOther = true;
      receive(request, response);
    });
    server.on('connect', (_: Inbound, socket: Socket) => {
      this.#connections.refuseConnect(socket, fault(405, 'Method not allowed', 'This is no forward proxy.', 'connect'));
    });
    return server;
  }

  #handle(raw: unknown, response: ServerResponse): void {
    // Fastify's types do not know our subclass; the server above makes no other.
    if (!(raw instanceof Inbound)) throw new TypeError('a request of another server');
    const request = raw;
    const found = findFault(request);
    if (found !== undefined) return this.#refuse(request, response, found);
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
    listen({ type: 'arrived', route: NO_ROUTE });
    response.on('close', () => {
      const took = clock.now() - since;
      listen({ type: 'done', record: recordRefused(request, problem, requestId, took) });
    });
    const answer = (): void => {
      if (response.destroyed) return;
      const close = this.#drainBy !== undefined || request.isUnframed || request.isComing;
      const unread = this.#options.snapshot().bodyIdle;
      writeProblem(response, problem, { requestId, via, retryAfter: undefined, attempts: 0, close, unread });
      endAnswer(response, request);
    };
    // A short body has come with the head, and is parsed behind it: then the connection can go on.
    if (request.hasBody) setImmediate(answer);
    else answer();
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const problem = problemOfParser(error);
    // One that connected and said nothing was not asking anything.
    if (problem === undefined || socket.bytesRead === 0) socket.destroy();
    else this.#connections.refuse(socket, problem);
  }

  /** An answer to what never became a request. */
  #refuseUnread(socket: Socket, problem: Problem): void {
    const { via, listen } = this.#context;
    const requestId = this.#nextId();
    listen({ type: 'arrived', route: NO_ROUTE });
    listen({ type: 'done', record: recordRefused(undefined, problem, requestId, 0) });
    writeRawProblem(socket, problem, { requestId, via });
  }

  #nextId(): string {
    this.#requests += 1;
    return `${this.#options.instance}-${this.#requests.toString(36)}`;
  }
}
