import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import Fastify from 'fastify';
import { Agent } from 'undici';
import type { Address } from '../config/address.ts';
import { writeAddress } from '../config/address.ts';
import type { Bound } from '../policy/bound.ts';
import type { Millis } from '../policy/types.ts';
import { NO_SCHEMAS } from '../no-schemas.ts';
import { addressOf, clientAddress } from './address.ts';
import type { Capacity } from './capacity.ts';
import type { ProxyContext } from './context.ts';
import type { Endpoints } from './endpoints.ts';
import type { FrontDoorOptions } from './front-door.ts';
import { FrontDoor } from './front-door.ts';
import { isLoop, isUsableRequestId } from './headers.ts';
import type { Inbound } from './inbound.ts';
import { findFault, findRepeated, Http1Inbound, KNOWN_METHODS } from './inbound.ts';
import { Life } from './life.ts';
import type { Outbound } from './outbound.ts';
import { Pipelines } from './pipelines.ts';
import type { Snapshot } from './plan.ts';
import type { Problem } from './problem.ts';
import { fault } from './problem.ts';
import { Refusals } from './refusals.ts';
import { problemOfParser } from './parser-problem.ts';
import { Roster } from './roster.ts';
import { rewriteTarget } from './router.ts';
import { Upgrade } from './upgrade.ts';

export interface ProxyOptions {
  readonly context: Omit<ProxyContext, 'isDraining' | 'proto'>;
  readonly frontDoor: FrontDoorOptions;
  /** The config as it is now: each exchange takes the snapshot of its arrival, and keeps it. */
  readonly snapshot: () => Snapshot;
  /** Unique among processes: in Via, and in request ids. */
  readonly instance: string;
  /** How much of all that this process can take. */
  readonly capacity: Capacity;
}

/** The proxy: a Fastify server whose one route is @fastify/http-proxy's, with our own exchange in place of its handler. */
export class Proxy {
  readonly #options: ProxyOptions;
  readonly #context: ProxyContext;
  readonly #lives = new Roster<Life>();
  readonly #pipelines = new Pipelines((socket, problem) => this.#refusals.refuseUnread(socket, problem));
  readonly #app: FastifyInstance;
  readonly #refusals: Refusals;
  #door: FrontDoor | undefined;
  #requests = 0;
  /** Set once it goes away: nothing goes on for longer. */
  #drainBy: Millis | undefined;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#context = {
      ...options.context,
      proto: options.frontDoor.tls === undefined ? 'http' : 'https',
      isDraining: () => this.#drainBy !== undefined,
    };
    const { capacity, snapshot } = options;
    this.#refusals = new Refusals({ context: this.#context, capacity, snapshot, nextId: () => this.#nextId() });
    this.#app = this.#build();
  }

  get inFlight(): number {
    return this.#lives.size;
  }

  /** Whether a request in flight goes there. Looks at all of them: for what happens seldom. */
  isUsing(endpoints: Endpoints): boolean {
    for (const life of this.#lives) if (life.goesTo(endpoints)) return true;
    return false;
  }

  get bounds(): readonly Bound[] {
    const own = this.#options.capacity.bound(this.#count());
    return this.#door === undefined ? [own] : [this.#door.bound, own];
  }

  /**
   * @returns where: `https://127.0.0.1:8443`, `unix:/run/tidegate.sock`
   * @throws the error of listen(2), with its code
   */
  async listen(address: Address): Promise<string> {
    if (address.kind === 'unix') {
      await this.#app.listen({ path: address.path });
      return writeAddress(address);
    }
    const url = await this.#app.listen({ host: address.host, port: address.port });
    return url.replace(/^http:/, `${this.#context.proto}:`); // Fastify does not know what the front door speaks
  }

  /** Takes no new connections, and ends each one with the response it is at. Requests in flight go on. */
  drain(by: Millis): void {
    this.#drainBy = by;
    for (const life of this.#lives) life.drive.drain(by);
    this.#door?.drain();
  }

  /** The time of a drain is over: tells who still waits for a turn, or for whom it is waited. */
  expire(): void {
    for (const life of this.#lives) life.expire();
  }

  /** Ends what is left, at once; after a drain that left nothing, when the last bytes have gone out. */
  async close(): Promise<void> {
    if (this.#drainBy !== undefined && this.#lives.size === 0) await this.#door?.settle();
    this.#door?.destroy();
    await this.#app.close();
    this.#context.gateTimer.stop();
  }

  #build(): FastifyInstance {
    const app = Fastify({
      logger: false,
      schemaController: NO_SCHEMAS,
      trustProxy: false, // ours: see address.ts
      serverFactory: (handler) => this.#createServer(handler),
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
        this.#handle(request.raw, reply.raw);
      },
    });
    return app;
  }

  #createServer(handler: (request: Http1Inbound, response: ServerResponse) => void): Server {
    const { capacity } = this.#options;
    const begin = (request: Http1Inbound, response: ServerResponse): void => {
      request.mask();
      if (!this.#refusals.turnAway(request, response, capacity.shed())) handler(request, response);
    };
    const overflow = (problem: Problem) => (request: Http1Inbound, response: ServerResponse) => {
      request.mask();
      this.#refusals.refuse(request, response, problem);
    };
    const disappoint = (request: Http1Inbound, response: ServerResponse): void => {
      request.mask();
      this.#refusals.refuseExpectation(request, response);
    };
    this.#door = new FrontDoor(this.#options.frontDoor, {
      request: (request, response) => {
        const full = capacity.refuse(this.#count());
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
        if (this.#refusals.turnAway(request, response, capacity.refuse(this.#count()) ?? capacity.shed())) return;
        this.#handle(request, response, upgrade);
      },
    });
    return this.#door.server;
  }

  #receiveStream(request: Inbound, response: Outbound): void {
    const { capacity } = this.#options;
    if (this.#refusals.turnAway(request, response, capacity.refuse(this.#count()) ?? capacity.shed())) return;
    const { expect } = request.headers;
    if (request.verb === 'CONNECT') return this.#refusals.refuse(request, response, NO_TUNNEL);
    if (expect !== undefined && !request.expectsContinue) return this.#refusals.refuseExpectation(request, response);
    if (KNOWN_METHODS.has(request.verb)) return this.#handle(request, response);
    this.#refusals.refuse(request, response, fault(501, 'Not implemented', 'This method is not known here.', 'method'));
  }

  #handle(request: Inbound, response: Outbound, upgrade?: Upgrade): void {
    const found = findFault(request);
    if (found !== undefined) return this.#refusals.refuse(request, response, found.problem, found.isUnframed);
    if (isLoop(request.headers.via, this.#context.via)) {
      return this.#refusals.refuse(
        request,
        response,
        fault(508, 'Loop detected', 'This request has been here before.', 'loop'),
      );
    }
    const snapshot = this.#options.snapshot();
    const route = snapshot.router.find(request.verb, request.headers.host, request.path);
    if (route === undefined) {
      return this.#refusals.refuse(request, response, fault(404, 'Not found', 'No route leads there.', 'no_route'));
    }
    const repeated = findRepeated(request, route.target.identities);
    if (repeated !== undefined) {
      const detail = `The request has more than one ${repeated}: whose it is would be a matter of opinion.`;
      return this.#refusals.refuse(request, response, fault(400, 'Bad request', detail, 'bad_request'));
    }
    // `/v1//x` would become `//x`, which many take for the name of a host.
    if (route.rewritePrefix !== undefined && rewriteTarget(request.target, route).startsWith('//')) {
      return this.#refusals.refuse(request, response, NAMES_A_HOST);
    }
    const peer = addressOf(request.socket.remoteAddress);
    const client = snapshot.identify(request, clientAddress(request, peer, snapshot.trusts));
    const requestId = this.#nextId();
    const given = request.headers['x-request-id'];
    const xRequestId = typeof given === 'string' && isUsableRequestId(given) ? given : requestId;
    const arrival = { request, response, upgrade, route, snapshot, client, peer, requestId, xRequestId };
    const life = new Life(this.#context, arrival, this.#onLifeOver);
    this.#lives.add(life);
    if (this.#drainBy !== undefined) life.drive.drain(this.#drainBy);
    life.start();
  }

  readonly #onLifeOver = (ended: Life): void => {
    this.#lives.remove(ended);
  };

  /** Requests that take memory: those that go on, and those that wait for their turn on their connection. */
  #count(): number {
    return this.#lives.size + this.#pipelines.waiting;
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const problem = problemOfParser(error);
    // One that connected and said nothing was not asking anything.
    if (problem === undefined || socket.bytesRead === 0) socket.destroy();
    else this.#pipelines.refuse(socket, problem);
  }

  #nextId(): string {
    this.#requests += 1;
    return `${this.#options.instance}-${this.#requests.toString(36)}`;
  }
}

const NAMES_A_HOST = fault(
  400,
  'Bad request',
  'The request has a path that starts with two slashes where it goes.',
  'bad_request',
);

const NO_TUNNEL = fault(405, 'Method not allowed', 'This is no forward proxy.', 'connect');
