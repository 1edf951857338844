import { setTimeout as sleep } from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import { MAX_CONCURRENT_STREAMS } from '../../../config/schema/listen-schema.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { RequestSink } from '../../server/request-source.ts';
import { MAX_SESSION_MEMORY } from '../../undici/http2-session-memory.ts';
import { toCheckResponse } from './answer-check.ts';
import { errorOf, isOverLimit, toRateLimitResponse } from './answer-descriptors.ts';
import { describeCheck } from './describe-check.ts';
import { type DescribedHits, describeDescriptors } from './describe-descriptors.ts';
import ENVOY_API from './envoy-api.json' with { type: 'json' };
import type { EnvoyCheckRequest, EnvoyCheckResponse, RateLimitRequest, RateLimitResponse } from './envoy-messages.ts';
import { type CallError, type CheckAnswer, type CheckCall, runCheck } from './run-check.ts';

/** More than the headers of a request and its description need. Envoy sends no body unless it is configured to. */
export const MAX_MESSAGE_BYTES = 128 * 1024;

/** A connection closes once its calls have their answers, without an action of its client. */
const FLUSH_TIMEOUT: Millis = 5000;

const API: object = ENVOY_API;

export interface GrpcCheckServerOptions {
  readonly sink: RequestSink;
  /** A connection without calls is closed after this time. */
  readonly idleTimeout: Millis;
}

/** Answers the gRPC calls of Envoy, `Authorization.Check` and `ShouldRateLimit`, on connections that were accepted elsewhere. */
export class GrpcCheckServer {
  readonly #options: GrpcCheckServerOptions;
  readonly #server: Server;
  readonly #injector: ReturnType<Server['createConnectionInjector']>;
  #drained: Promise<void> | undefined;

  constructor(options: GrpcCheckServerOptions) {
    this.#options = options;
    this.#server = new Server({
      'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
      'grpc.max_concurrent_streams': MAX_CONCURRENT_STREAMS,
      'grpc.max_connection_idle_ms': options.idleTimeout,
      'grpc-node.max_session_memory': MAX_SESSION_MEMORY,
      'grpc.enable_channelz': 0, // it keeps a record of each connection, which nothing reads
    });
    const definitions = fromJSON(API, { longs: Number, enums: String });
    this.#server.addService(loadService(definitions, 'envoy.service.auth.v3.Authorization'), {
      check: (call: ServerUnaryCall<EnvoyCheckRequest, EnvoyCheckResponse>, done: sendUnaryData<EnvoyCheckResponse>) =>
        this.#check(call, done),
    });
    this.#server.addService(loadService(definitions, 'envoy.service.ratelimit.v3.RateLimitService'), {
      shouldRateLimit: (
        call: ServerUnaryCall<RateLimitRequest, RateLimitResponse>,
        done: sendUnaryData<RateLimitResponse>,
      ) => this.#rateLimit(call, done),
    });
    // TLS, if there is any, ends before.
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
  }

  /** @param connection whose next bytes are those of HTTP/2 */
  accept(connection: Duplex): void {
    if (this.#drained !== undefined) return void connection.destroy();
    // Node's HTTP/1.1 server leaves this side open when the client ends its own: then no session would notice that the client has gone.
    connection.allowHalfOpen = false;
    this.#injector.injectConnection(connection);
  }

  /** Sends GOAWAY: each connection closes after its current calls. */
  drain(): void {
    this.#drained ??= new Promise((resolve) => this.#server.tryShutdown(() => resolve()));
  }

  /** Resolves when all answers have been sent and the connections are closed; after `FLUSH_TIMEOUT` if clients do not read. */
  async flush(): Promise<void> {
    if (this.#drained === undefined) return;
    await Promise.race([this.#drained, sleep(FLUSH_TIMEOUT, undefined, { ref: false })]);
  }

  close(): void {
    this.#server.forceShutdown();
  }

  #check(call: ServerUnaryCall<EnvoyCheckRequest, EnvoyCheckResponse>, done: sendUnaryData<EnvoyCheckResponse>): void {
    const described = describeCheck(call.request);
    if (typeof described === 'string') return done(invalid(described));
    runCheck(this.#options.sink, call, described, (answer) => {
      if ('code' in answer) done(answer);
      else done(null, toCheckResponse(answer));
    });
  }

  #rateLimit(call: ServerUnaryCall<RateLimitRequest, RateLimitResponse>, done: sendUnaryData<RateLimitResponse>): void {
    const settings = this.#options.sink.extAuthz.settings;
    if (settings === undefined) return done({ code: status.UNIMPLEMENTED, details: 'Checks are turned off.' });
    const described = describeDescriptors(call.request, settings);
    if (typeof described === 'string') return done(invalid(described));
    const count = call.request.descriptors?.length ?? 0;
    this.#admit(call, described, described.hits, (answer) => {
      const error = 'code' in answer ? answer : errorOf(answer);
      if ('code' in answer || error !== undefined) return done(error ?? null);
      done(null, toRateLimitResponse(answer, count, this.#options.sink.extAuthz.now()));
    });
  }

  /** Admits one request after another, until one is refused. The ones before it have been counted. */
  #admit(
    call: CheckCall,
    described: DescribedHits,
    left: number,
    onAnswer: (answer: CheckAnswer | CallError) => void,
  ): void {
    if (left === 0) return onAnswer(NOT_COUNTED);
    runCheck(this.#options.sink, call, described, (answer) => {
      const isAllowed = !('code' in answer) && !isOverLimit(answer) && errorOf(answer) === undefined;
      if (isAllowed && left > 1) this.#admit(call, described, left - 1, onAnswer);
      else onAnswer(answer);
    });
  }
}

/** The answer to a call with hits_addend 0. */
const NOT_COUNTED: CheckAnswer = { status: 200, headers: new Map(), body: '', limits: [] };

function invalid(details: string): CallError {
  return { code: status.INVALID_ARGUMENT, details };
}

function loadService(definitions: ReturnType<typeof fromJSON>, name: string): ServiceDefinition {
  const found = definitions[name];
  if (found === undefined || 'format' in found) throw new Error(`envoy-api.json does not define the service ${name}`);
  return found;
}
