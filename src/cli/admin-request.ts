/** Requests to the admin port of a running proxy. */
import { Agent } from 'undici';
import { completeAddress, parseListenAddress } from '../config/values/listen-address.ts';
import type { Millis } from '../core/scalars.ts';

/** Where the admin port is, and what opens it. */
export interface AdminTarget {
  /** `http://127.0.0.1:9901`, `127.0.0.1:9901` or `unix:/path`; undefined: 127.0.0.1:9901. */
  readonly admin: string | undefined;
  readonly token: string | undefined;
}

export interface AdminCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With the query. */
  readonly path: string;
  /** What the request is about, such as an id: problems of it are reported by this name. */
  readonly subject: string;
  /** Statuses besides 200 that the admin API responds with, with a detail for the user. */
  readonly problems: readonly number[];
  /** The payload is the text of the response, as that of /metrics is no JSON. */
  readonly asText?: boolean;
  /** The token is not sent, even if there is one. */
  readonly isAnonymous?: boolean;
  /** A longer response is a failure; 1 MiB by default. */
  readonly maxBytes?: number;
}

export type AdminRequest = AdminTarget & AdminCall;

export type AdminResponse =
  /** A response with status 200; undefined if it is not JSON. */
  { readonly kind: 'answered'; readonly payload: unknown } | CommandFailure;

/** As `AdminResponse`, with the cause of a failure for commands that go on after some. */
export type AdminOutcome =
  | Extract<AdminResponse, { readonly kind: 'answered' }>
  /** One of `problems`. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly detail: string;
      readonly failure: CommandFailure;
    }
  | { readonly kind: 'too_long'; readonly failure: CommandFailure }
  | {
      readonly kind: 'unusable';
      readonly cause: 'cut_off' | 'unauthorized' | 'not_tidegate';
      readonly failure: CommandFailure;
    }
  /** There is no response. `code`: of the system or undici; `no response` after a timeout. */
  | {
      readonly kind: 'unusable';
      readonly cause: 'unreachable';
      readonly code: string;
      readonly failure: CommandFailure;
    };

/** Exit code 1: a failure that can be fixed; 2: an invalid command line. */
export interface CommandFailure {
  readonly kind: 'failed';
  readonly message: string;
  readonly exitCode: 1 | 2;
}

const DEFAULT_ADMIN_ADDRESS = '127.0.0.1:9901';
const REQUEST_TIMEOUT: Millis = 5000;
const MIB = 1024 * 1024;
/** Most responses take some kilobytes. */
const DEFAULT_MAX_BYTES = MIB;
/** For each MiB that a response may have. */
const TIME_PER_MIB: Millis = 1000;

/** Sends one request. Never rejects: a failure has a message with the cause and a remedy. */
export async function requestAdmin({ admin, token, ...call }: AdminRequest): Promise<AdminResponse> {
  const connection = AdminConnection.open({ admin, token });
  if ('kind' in connection) return connection;
  try {
    const outcome = await connection.send(call);
    return outcome.kind === 'answered' ? outcome : outcome.failure;
  } finally {
    await connection.close();
  }
}

/** Sends requests over one connection, one after the other, or over several at the same time. */
export class AdminConnection {
  readonly #access: AdminTarget;
  readonly #origin: string;
  readonly #dispatcher: Agent;

  private constructor(access: AdminTarget, { origin, socketPath }: AdminEndpoint, connections: number) {
    this.#access = access;
    this.#origin = origin;
    this.#dispatcher = new Agent({
      connections,
      connect: socketPath === undefined ? {} : { socketPath },
    });
  }

  /** Connects with the first request. Returns a failure if the address is invalid. */
  static open(access: AdminTarget, connections = 1): AdminConnection | CommandFailure {
    const { admin = DEFAULT_ADMIN_ADDRESS } = access;
    const endpoint = parseAdminEndpoint(admin);
    if (endpoint !== undefined) return new AdminConnection(access, endpoint, connections);
    const expected = 'http://host:port, host:port or unix:/path';
    return { kind: 'failed', message: `--admin: '${admin}' is not an address; expected ${expected}`, exitCode: 2 };
  }

  /** Never rejects: a failure has a message with the cause and a remedy. */
  async send(call: AdminCall): Promise<AdminOutcome> {
    const { token, admin = DEFAULT_ADMIN_ADDRESS } = this.#access;
    const { method, path, subject, asText = false, isAnonymous = false, maxBytes = DEFAULT_MAX_BYTES } = call;
    let hasBegun = false;
    try {
      const { statusCode, body } = await this.#dispatcher.request({
        origin: this.#origin,
        path,
        method,
        headers: {
          accept: asText ? 'text/plain' : 'application/json',
          ...(token === undefined || isAnonymous ? {} : { authorization: `Bearer ${token}` }),
        },
        headersTimeout: REQUEST_TIMEOUT,
        bodyTimeout: REQUEST_TIMEOUT,
        signal: AbortSignal.timeout(2 * REQUEST_TIMEOUT + (maxBytes / MIB) * TIME_PER_MIB),
      });
      hasBegun = true;
      const text = await readText(body, maxBytes);
      if (text === undefined) {
        const failure = fail(`${subject}: the response of ${admin} is longer than ${maxBytes / MIB} MiB`);
        return { kind: 'too_long', failure };
      }
      const payload = asText && statusCode === 200 ? text : parseJson(text);
      return statusCode === 200
        ? { kind: 'answered', payload }
        : describeStatus(statusCode, payload, this.#access, call);
    } catch (error) {
      return hasBegun
        ? { kind: 'unusable', cause: 'cut_off', failure: describeCut(admin, error) }
        : {
            ...{ kind: 'unusable', cause: 'unreachable', code: codeOf(error) },
            failure: describeUnreachable(admin, error),
          };
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }
}

/** The response has another form than that of this version of Tidegate. */
export function notFromTidegate(admin = DEFAULT_ADMIN_ADDRESS, status = 200, detail?: string): CommandFailure {
  const suffix = detail === undefined ? '' : ` (${detail})`;
  return fail(`${admin} answered with ${status}${suffix}: is this the admin port of tidegate?`);
}

interface AdminEndpoint {
  readonly origin: string;
  readonly socketPath: string | undefined;
}

function parseAdminEndpoint(admin: string): AdminEndpoint | undefined {
  if (/^https?:\/\//i.test(admin)) {
    return URL.canParse(admin) ? { origin: new URL(admin).origin, socketPath: undefined } : undefined;
  }
  const address = completeAddress(admin);
  const reading = parseListenAddress(address);
  if (!reading.ok) return undefined;
  if (reading.value.kind === 'unix') return { origin: 'http://localhost', socketPath: reading.value.path };
  return { origin: `http://${address}`, socketPath: undefined };
}

function describeStatus(
  status: number,
  payload: unknown,
  { admin = DEFAULT_ADMIN_ADDRESS, token }: AdminTarget,
  { subject, problems }: AdminCall,
): AdminOutcome {
  if (status === 401) {
    const remedy =
      token === undefined
        ? 'set it with --token or TIDEGATE_ADMIN_TOKEN'
        : 'the token given is not the one of admin.token';
    const failure = fail(`the admin port at ${admin} requires a token: ${remedy}`);
    return { kind: 'unusable', cause: 'unauthorized', failure };
  }
  const detail = detailOf(payload);
  // Without a problem detail, the response comes from another program.
  if (problems.includes(status) && detail !== undefined) {
    return { kind: 'refused', status, detail, failure: fail(`${subject}: ${detail}`) };
  }
  return { kind: 'unusable', cause: 'not_tidegate', failure: notFromTidegate(admin, status, detail) };
}

function describeUnreachable(admin: string, error: unknown): CommandFailure {
  const check = 'is tidegate running, and is this its admin port (admin in its configuration, or --admin of serve)?';
  return fail(`the admin port at ${admin} cannot be reached (${codeOf(error)}): ${check}`);
}

function describeCut(admin: string, error: unknown): CommandFailure {
  return fail(`the response of ${admin} has been cut off (${codeOf(error)}): has tidegate stopped?`);
}

/** A timeout has a number of the DOM as its code. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'no response';
}

function fail(message: string): CommandFailure {
  return { kind: 'failed', message, exitCode: 1 };
}

/** Undefined if it is longer. */
async function readText(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function detailOf(payload: unknown): string | undefined {
  if (typeof payload !== 'object' || payload === null || !('detail' in payload)) return undefined;
  return typeof payload.detail === 'string' ? payload.detail : undefined;
}
