/** A request to the admin port of a running proxy, for commands that end with its response. */
import { Agent } from 'undici';
import { completeAddress, parseListenAddress } from '../config/values/listen-address.ts';
import type { Millis } from '../core/scalars.ts';

export interface AdminRequest {
  /** `http://127.0.0.1:9901`, `127.0.0.1:9901` or `unix:/path`; undefined: 127.0.0.1:9901. */
  readonly admin: string | undefined;
  readonly token: string | undefined;
  readonly method: 'GET' | 'DELETE';
  /** With the query. */
  readonly path: string;
  /** What the request is about, such as an id: problems of it are reported by this name. */
  readonly subject: string;
  /** Statuses besides 200 that the admin API responds with, with a detail for the user. */
  readonly problems: readonly number[];
}

export type AdminResponse =
  /** A response with status 200; undefined if it is not JSON. */
  { readonly kind: 'answered'; readonly payload: unknown } | CommandFailure;

/** Exit code 1: a failure that can be fixed; 2: an invalid command line. */
export interface CommandFailure {
  readonly kind: 'failed';
  readonly message: string;
  readonly exitCode: 1 | 2;
}

const DEFAULT_ADMIN_ADDRESS = '127.0.0.1:9901';
const REQUEST_TIMEOUT: Millis = 5000;
/** A response takes some kilobytes; a larger one does not come from Tidegate. */
const MAX_BYTES = 1024 * 1024;

/** Never rejects: a failure has a message with the cause and a remedy. */
export async function requestAdmin(request: AdminRequest): Promise<AdminResponse> {
  const { admin = DEFAULT_ADMIN_ADDRESS, token, method, path } = request;
  const endpoint = parseAdminEndpoint(admin);
  if (endpoint === undefined) {
    const expected = 'http://host:port, host:port or unix:/path';
    return { kind: 'failed', message: `--admin: '${admin}' is not an address; expected ${expected}`, exitCode: 2 };
  }
  const dispatcher = new Agent({
    connect: endpoint.socketPath === undefined ? {} : { socketPath: endpoint.socketPath },
  });
  try {
    const { statusCode, body } = await dispatcher.request({
      origin: endpoint.origin,
      path,
      method,
      headers: { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      headersTimeout: REQUEST_TIMEOUT,
      bodyTimeout: REQUEST_TIMEOUT,
      signal: AbortSignal.timeout(2 * REQUEST_TIMEOUT),
    });
    const payload = parseJson(await readText(body));
    return statusCode === 200 ? { kind: 'answered', payload } : describeStatus(statusCode, payload, request);
  } catch (error) {
    return describeUnreachable(admin, error);
  } finally {
    await dispatcher.destroy();
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
  { admin = DEFAULT_ADMIN_ADDRESS, token, subject, problems }: AdminRequest,
): CommandFailure {
  if (status === 401) {
    const remedy =
      token === undefined
        ? 'set it with --token or TIDEGATE_ADMIN_TOKEN'
        : 'the token given is not the one of admin.token';
    return fail(`the admin port at ${admin} requires a token: ${remedy}`);
  }
  const detail = detailOf(payload);
  // Without a problem detail, the response comes from another program.
  if (problems.includes(status) && detail !== undefined) return fail(`${subject}: ${detail}`);
  return notFromTidegate(admin, status, detail);
}

function describeUnreachable(admin: string, error: unknown): CommandFailure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no response';
  const check = 'is tidegate running, and is this its admin port (admin in its configuration, or --admin of serve)?';
  return fail(`the admin port at ${admin} cannot be reached (${code}): ${check}`);
}

function fail(message: string): CommandFailure {
  return { kind: 'failed', message, exitCode: 1 };
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_BYTES) break;
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
