import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { Agent } from 'undici';
import type { Address } from '../../config/values/listen-address.ts';
import { writeAddress } from '../../config/values/listen-address.ts';
import type { Bound } from '../../core/overload/resource-bound.ts';
import { NO_SCHEMAS } from './fastify-no-schemas.ts';
import type { Entrance, Reception } from './request-source.ts';
import { readExpectation } from '../headers/expect-header.ts';
import type { FrontDoorOptions } from './http-server.ts';
import { FrontDoor } from './http-server.ts';
import type { Inbound } from './server-request.ts';
import type { Http1Outbound } from './http1-server-response.ts';
import { Http1Inbound, KNOWN_METHODS } from './server-request.ts';
import type { Outbound } from './server-response.ts';
import { Pipelines } from './pipelines.ts';
import type { Problem } from '../response/problem-details.ts';
import { fault } from '../response/problem-details.ts';
import { problemOfParser } from './parse-error-problem.ts';
import { Upgrade } from './upgrade.ts';

export interface ListenerOptions extends FrontDoorOptions {
  readonly address: Address;
}

/** A server of our own: Fastify with one route, @fastify/http-proxy's, and our own exchange in place of its handler. */
export class Listener implements Entrance {
  readonly #options: ListenerOptions;
  readonly #pipelines = new Pipelines((socket, problem, request) =>
    this.#receiver.refusals.refuseUnread(socket, problem, request),
  );
  readonly #app: FastifyInstance;
  readonly #door: FrontDoor;
  #reception: Reception | undefined;

  /** @throws the error of node:fs or node:tls, when the certificate cannot be used */
  constructor(options: ListenerOptions) {
    this.#options = options;
    let handle: Handle = () => undefined;
    this.#door = this.#makeDoor((request, response) => handle(request, response));
    this.#app = this.#build((handler) => {
      handle = handler;
      return this.#door.server;
    });
  }

  get bounds(): readonly Bound[] {
    return [this.#door.bound];
  }

  get waiting(): number {
    return this.#pipelines.waiting;
  }

  async open(reception: Reception): Promise<string> {
    this.#reception = reception;
    const { address, tls } = this.#options;
    if (address.kind === 'unix') {
      await this.#app.listen({ path: address.path });
      return writeAddress(address);
    }
    const url = await this.#app.listen({ host: address.host, port: address.port });
    return tls === undefined ? url : url.replace(/^http:/, 'https:'); // Fastify does not know what the front door speaks
  }

  drain(): void {
    this.#door.drain();
  }

  settle(): Promise<void> {
    return this.#door.settle();
  }

  async close(): Promise<void> {
    this.#door.destroy();
    await this.#app.close();
  }

  /** Nobody comes in before it is open. */
  get #receiver(): Reception {
    if (this.#reception === undefined) throw new Error('a request before the listener was opened');
    return this.#reception;
  }

  #build(serverFactory: (handler: Handle) => Server): FastifyInstance {
    const app = Fastify({
      logger: false,
      schemaController: NO_SCHEMAS,
      trustProxy: false, // ours: see client-address.ts
      serverFactory,
      clientErrorHandler: (error, socket) => this.#onClientError(error, socket),
    });
    // Never used: our attempts go through pools of our own. Without one of its own the plug-in opens the global one.
    const unused = new Agent();
    app.addHook('onClose', async () => unused.close());
    void app.register(httpProxy, {
      upstream: '',
      replyOptions: { getUpstream: () => 'http://tidegate.invalid' }, // nothing gets that far
      undici: unused,
      httpMethods: ['GET'],
      disableRequestLogging: true,
      // Before its own handler, which would look at where the mask leads, with three URLs a request.
      preHandler: (request: FastifyRequest, reply) => {
        reply.hijack();
        // Fastify's types do not know our subclass; the front door makes no other.
        if (!(request.raw instanceof Http1Inbound)) throw new TypeError('a request of another server');
        this.#receiver.handle(request.raw, reply.raw);
      },
    });
    return app;
  }

  #makeDoor(handle: Handle): FrontDoor {
    const begin = (request: Http1Inbound, response: Http1Outbound): void => {
      request.mask();
      const { refusals } = this.#receiver;
      if (!refusals.turnAway(request, response, this.#receiver.shed())) handle(request, response);
    };
    const overflow = (problem: Problem) => (request: Http1Inbound, response: Http1Outbound) => {
      request.mask();
      this.#receiver.refusals.turnAway(request, response, problem);
    };
    const disappoint = (request: Http1Inbound, response: Http1Outbound): void => {
      request.mask();
      this.#receiver.refusals.refuseExpectation(request, response);
    };
    return new FrontDoor(this.#options, {
      request: (request, response) => {
        const full = this.#receiver.full();
        if (full === undefined) this.#pipelines.take(request, response, begin);
        // Behind another its refusal would take the place that there is none of.
        else if (response.socket === null) request.socket.destroy();
        else this.#pipelines.take(request, response, overflow(full));
      },
      expectation: (request, response) => this.#pipelines.take(request, response, disappoint),
      connect: (socket) => this.#pipelines.refuseConnect(socket, NO_TUNNEL),
      // Not through Fastify: nothing is left for it to decide, and it would have to be shown a request of HTTP/1.1.
      stream: (request, response) => this.#receiveStream(request, response),
      upgrade: (request, socket, head) => {
        if (!socket.writable) return void socket.destroy(); // told that it was not understood, or that it came too late
        request.mask();
        const upgrade = new Upgrade(request, socket, head);
        const { response } = upgrade;
        const { refusals } = this.#receiver;
        if (refusals.turnAway(request, response, this.#receiver.full() ?? this.#receiver.shed())) return;
        this.#receiver.handle(request, response, upgrade);
      },
    });
  }

  #receiveStream(request: Inbound, response: Outbound): void {
    const { refusals } = this.#receiver;
    if (refusals.turnAway(request, response, this.#receiver.full() ?? this.#receiver.shed())) return;
    if (request.verb === 'CONNECT') return refusals.refuse(request, response, NO_TUNNEL);
    if (readExpectation(request.headers.expect) === 'other') return refusals.refuseExpectation(request, response);
    if (KNOWN_METHODS.has(request.verb)) return this.#receiver.handle(request, response);
    refusals.refuse(request, response, fault(501, 'Not implemented', 'This method is not known here.', 'method'));
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const problem = problemOfParser(error);
    // One that connected and said nothing was not asking anything.
    if (problem === undefined || socket.bytesRead === 0) socket.destroy();
    else this.#pipelines.refuse(socket, problem);
  }
}

type Handle = (request: Http1Inbound, response: Http1Outbound) => void;

const NO_TUNNEL = fault(405, 'Method not allowed', 'This is no forward proxy.', 'connect');
