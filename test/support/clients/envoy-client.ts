import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import ENVOY_API from '../../../src/http/ext-authz/grpc/envoy-api.json' with { type: 'json' };
import { atEnd } from '../at-end.ts';

const API: object = ENVOY_API;
const DEFINITIONS = fromJSON(API, { longs: Number, enums: String });

/** A decoded message; fields that are not set are absent. */
export type Message = Record<string, unknown>;

export const CHECK = '/envoy.service.auth.v3.Authorization/Check';
export const SHOULD_RATE_LIMIT = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

export interface EnvoyClient {
  check(request: Message): Promise<Message>;
  shouldRateLimit(request: Message): Promise<Message>;
  /** Sends these bytes as the message. @param timeoutMs sent as grpc-timeout */
  sendBytes(path: string, bytes: Buffer, timeoutMs?: number): Promise<Buffer>;
  /** Starts a call whose result is ignored. */
  startBytes(path: string, bytes: Buffer): ClientUnaryCall;
  close(): void;
}

/** A gRPC client that sends what Envoy sends. @param address `host:port`, or `unix:/path` */
export function openEnvoyClient(
  address: string,
  {
    tls = credentials.createInsecure(),
    options = {},
  }: { readonly tls?: ChannelCredentials; readonly options?: ChannelOptions } = {},
): EnvoyClient {
  const client = new Client(address, tls, { 'grpc.enable_retries': 0, ...options });
  atEnd(() => client.close());
  const sendBytes = (path: string, bytes: Buffer, timeoutMs = 30_000): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const deadline = Date.now() + timeoutMs;
      client.makeUnaryRequest(
        path,
        keep,
        keep,
        bytes,
        new Metadata(),
        { deadline },
        (error: ServiceError | null, answer) => {
          if (error !== null) reject(error);
          else if (answer !== undefined) resolve(answer);
        },
      );
    });
  const call = async (path: string, request: Message): Promise<Message> => {
    const method = methodOf(path);
    return method.responseDeserialize(await sendBytes(path, method.requestSerialize(request)));
  };
  return {
    check: (request) => call(CHECK, request),
    shouldRateLimit: (request) => call(SHOULD_RATE_LIMIT, request),
    sendBytes,
    startBytes: (path, bytes) => {
      const started = client.makeUnaryRequest(path, keep, keep, bytes, () => undefined);
      started.on('error', () => undefined);
      return started;
    },
    close: () => client.close(),
  };
}

export function encodeCheck(request: Message): Buffer {
  return methodOf(CHECK).requestSerialize(request);
}

interface Method {
  requestSerialize(message: Message): Buffer;
  responseDeserialize(bytes: Buffer): Message;
}

function methodOf(path: string): Method {
  const [, service = '', name = ''] = path.split('/');
  const definition = DEFINITIONS[service];
  if (definition === undefined || 'format' in definition) throw new Error(`no service ${service}`);
  const method = definition[name];
  if (method === undefined) throw new Error(`no method ${name}`);
  const { requestSerialize, responseDeserialize } = method;
  return {
    requestSerialize: (message) => requestSerialize(message),
    responseDeserialize: (bytes) => ({ ...responseDeserialize(bytes) }),
  };
}

function keep(bytes: Buffer): Buffer {
  return bytes;
}

export interface EnvoyRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly address?: string;
  readonly principal?: string;
  readonly contextExtensions?: Record<string, string>;
}

/** A CheckRequest as Envoy 1.37 fills it for a request over HTTP/1.1. */
export function describeAsEnvoy({
  method = 'GET',
  path = '/v1/charges?limit=3',
  headers = {},
  address = '203.0.113.7',
  principal = '',
  contextExtensions = {},
}: EnvoyRequest = {}): Message {
  const host = 'api.example.com';
  const socketAddress = (ip: string, portValue: number): Message => ({ socketAddress: { address: ip, portValue } });
  return {
    attributes: {
      source: { address: socketAddress(address, 51_234), principal },
      destination: { address: socketAddress('192.0.2.10', 10_000) },
      request: {
        time: { seconds: 1_767_225_600, nanos: 123_000_000 },
        http: {
          id: '14322837592385029385',
          method,
          headers: {
            ':authority': host,
            ':method': method,
            ':path': path,
            ':scheme': 'http',
            'user-agent': 'curl/8.5.0',
            'x-forwarded-for': address,
            'x-forwarded-proto': 'http',
            'x-request-id': '5f0a1b9e-6a0c-4d6a-a2f3-0f0f3b8f2c11',
            'content-length': '17',
            ...headers,
          },
          path,
          host,
          scheme: 'http',
          protocol: 'HTTP/1.1',
        },
      },
      contextExtensions,
      metadataContext: {},
      routeMetadataContext: {},
    },
  };
}
