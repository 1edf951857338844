import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Duplex } from 'node:stream';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { Agent } from 'undici';
import type { Address } from '../../config/values/listen-address.ts';
import { formatListenAddress } from '../../config/values/listen-address.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { NO_SCHEMAS } from './fastify-no-schemas.ts';
import type { GrpcCheckServer } from '../ext-authz/grpc/grpc-check-server.ts';
import type { RequestSource, RequestSink } from './request-source.ts';
import { parseExpect } from '../headers/expect-header.ts';
import type { HttpServerOptions } from './http-server.ts';
import { HttpServer, KEEP_ALIVE } from './http-server.ts';
import type { HttpServerRequest } from './server-request.ts';
import type { Http1ServerResponse } from './http1-server-response.ts';
import { Http1ServerRequest } from './http1-server-request.ts';
import { KNOWN_METHODS } from './server-request.ts';
import type { HttpServerResponse } from './server-response.ts';
import { StartQueue } from './start-queue.ts';
import { isLoopBusy } from '../undici/write-batching.ts';
import { Pipelines, type StartRequest } from './pipelines.ts';
import type { Problem } from '../response/problem.ts';
import { requestProblem } from '../response/problem-details.ts';
import { problemForParseError } from './parse-error-problem.ts';
import { Upgrade } from './upgrade.ts';

/**
 * Connections that may wait until the process accepts them; the kernel allows `net.core.somaxconn`, 4096 on Linux. With Node's
 * 511, a burst during a pause gets SYN cookies, and the kernel resets some of these connections although they seemed to be open.
 */
const ACCEPT_BACKLOG = 4096;

export interface FastifyListenerOptions extends Omit<HttpServerOptions, 'acceptHttp2'> {
  readonly address: Address;
  /** Answer the gRPC checks of an ingress. */
  readonly grpc?: boolean;
}

/** The proxy's own server: Fastify with the one route of @fastify/http-proxy, whose handler is replaced by the exchange. */
export class FastifyListener implements RequestSource {
  readonly #options: FastifyListenerOptions;
  readonly #pipelines = new Pipelines(
    (socket, problem, request) => this.#sink.rejections.rejectUnparsed(socket, problem, request),
    (request, isRefused) => this.#sink.count(request, isRefused),
    new StartQueue({
      now: () => performance.now(),
      needsTimers: () => isLoopBusy() && this.#sink.hasQueued,
    }),
  );
  readonly #app: FastifyInstance;
  readonly #server: HttpServer;
  #requestSink: RequestSink | undefined;
  /** Undefined without gRPC, and before `open`. */
  #grpc: GrpcCheckServer | undefined;

  /** @throws the error of node:fs or node:tls, when the certificate cannot be used */
  constructor(options: FastifyListenerOptions) {
    this.#options = options;
    let handle: HandleRequest = () => undefined;
    this.#server = this.#makeServer((request, response) => handle(request, response));
    this.#app = this.#buildFastify((handler) => {
      handle = handler;
      return this.#server.server;
    });
  }

  get bounds(): readonly ResourceBound[] {
    return [this.#server.bound];
  }

  get startingCount(): number {
    return this.#pipelines.startingCount;
  }

  async open(sink: RequestSink): Promise<string> {
    this.#requestSink = sink;
    const { address, tls, grpc } = this.#options;
    if (grpc === true) {
      // Without gRPC, none of its modules is loaded.
      const { GrpcCheckServer } = await import('../ext-authz/grpc/grpc-check-server.ts');
      this.#grpc = new GrpcCheckServer({ sink, idleTimeout: KEEP_ALIVE });
    }
    if (address.kind === 'unix') {
      await this.#app.listen({ path: address.path, backlog: ACCEPT_BACKLOG });
      return formatListenAddress(address);
    }
    const url = await this.#app.listen({ host: address.host, port: address.port, backlog: ACCEPT_BACKLOG });
    return tls === undefined ? url : url.replace(/^http:/, 'https:'); // Fastify does not know that the server uses TLS
  }

  drain(): void {
    this.#server.drain();
    this.#grpc?.drain();
  }

  async flush(): Promise<void> {
    await Promise.all([this.#server.flush(), this.#grpc?.flush()]);
  }

  async close(): Promise<void> {
    this.#grpc?.close();
    this.#server.destroy();
    await this.#app.close();
  }

  /** Requests arrive only after `open`. */
  get #sink(): RequestSink {
    if (this.#requestSink === undefined) throw new Error('a request arrived before the listener was opened');
    return this.#requestSink;
  }

  #buildFastify(serverFactory: (handler: HandleRequest) => Server): FastifyInstance {
    const app = Fastify({
      logger: false,
      schemaController: NO_SCHEMAS,
      trustProxy: false, // ours: see client-address.ts
      serverFactory,
      clientErrorHandler: (error, socket) => this.#onClientError(error, socket),
    });
    // Never used, because attempts use our own pools. Without it the plugin would create undici's global agent.
    const unused = new Agent();
    app.addHook('onClose', async () => unused.close());
    void app.register(httpProxy, {
      upstream: '',
      replyOptions: { getUpstream: () => 'http://tidegate.invalid' }, // never requested
      undici: unused,
      httpMethods: ['GET'],
      disableRequestLogging: true,
      // Runs before the plugin's handler, which would parse three URLs for each request.
      preHandler: (request: FastifyRequest, reply) => {
        reply.hijack();
        // `HttpServer` makes requests of this class only, which Fastify's types do not know.
        if (!(request.raw instanceof Http1ServerRequest)) throw new TypeError('the request belongs to another server');
        this.#sink.handle(request.raw, reply.raw);
      },
    });
    return app;
  }

  #makeServer(handle: HandleRequest): HttpServer {
    const begin = (request: Http1ServerRequest, response: Http1ServerResponse): void => {
      request.hideFromRouter();
      const { rejections } = this.#sink;
      if (!rejections.rejectIf(request, response, this.#sink.problemIfOverloaded(request))) handle(request, response);
    };
    const rejectFull = (problem: Problem) => (request: Http1ServerRequest, response: Http1ServerResponse) => {
      request.hideFromRouter();
      this.#sink.rejections.rejectIf(request, response, problem);
    };
    const receive = (request: Http1ServerRequest, response: Http1ServerResponse, start: StartRequest): void => {
      const full = this.#sink.problemIfFull(request);
      if (full === undefined) this.#pipelines.enqueue(request, response, start);
      else this.#pipelines.refuse(request, response, rejectFull(full));
    };
    const rejectExpectation = (request: Http1ServerRequest, response: Http1ServerResponse): void => {
      request.hideFromRouter();
      this.#sink.rejections.rejectExpectation(request, response);
    };
    const acceptHttp2 = (connection: Duplex): void => this.#grpc?.accept(connection);
    return new HttpServer(
      { ...this.#options, acceptHttp2: this.#options.grpc === true ? acceptHttp2 : undefined },
      {
        request: (request, response) => receive(request, response, begin),
        expectation: (request, response) => receive(request, response, rejectExpectation),
        connect: (socket) => this.#pipelines.rejectConnect(socket, CONNECT_REJECTED),
        // Not through Fastify, which has nothing to decide here and takes HTTP/1.1 requests only.
        stream: (request, response) => this.#receiveStream(request, response),
        upgrade: (request, socket, head) => {
          if (!socket.writable) return void socket.destroy(); // the parser has refused it, or it came too late
          request.hideFromRouter();
          const upgrade = new Upgrade(request, socket, head);
          const { response } = upgrade;
          const { rejections } = this.#sink;
          const problem = this.#sink.problemIfFull(request) ?? this.#sink.problemIfOverloaded(request);
          if (rejections.rejectIf(request, response, problem)) return;
          this.#sink.handle(request, response, upgrade);
        },
      },
    );
  }

  #receiveStream(request: HttpServerRequest, response: HttpServerResponse): void {
    const { rejections } = this.#sink;
    const problem = this.#sink.problemIfFull(request) ?? this.#sink.problemIfOverloaded(request);
    if (rejections.rejectIf(request, response, problem)) return;
    if (request.verb === 'CONNECT') return rejections.reject(request, response, CONNECT_REJECTED);
    if (parseExpect(request.headers.expect) === 'other') return rejections.rejectExpectation(request, response);
    if (KNOWN_METHODS.has(request.verb)) return this.#sink.handle(request, response);
    rejections.reject(
      request,
      response,
      requestProblem(501, 'Not implemented', 'This method is not supported.', 'method'),
    );
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const problem = problemForParseError(error);
    // A connection that sent no bytes made no request.
    if (problem === undefined || socket.bytesRead === 0) socket.destroy();
    else this.#pipelines.reject(socket, problem);
  }
}

type HandleRequest = (request: Http1ServerRequest, response: Http1ServerResponse) => void;

const CONNECT_REJECTED = requestProblem(
  405,
  'Method not allowed',
  'This is a reverse proxy and does not support CONNECT.',
  'connect',
);
