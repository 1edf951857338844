/** `tidegate explain ID`: fetches an explanation from the admin port of a running proxy and renders it. */
import { Agent } from 'undici';
import { completeAddress, parseListenAddress } from '../config/values/listen-address.ts';
import type { Explanation } from '../telemetry/explanations/build-explanation.ts';
import { renderExplanation } from '../telemetry/explanations/render-explanation.ts';
import type { Millis } from '../core/scalars.ts';

export interface ExplainOptions {
  readonly id: string;
  /** `http://127.0.0.1:9901`, `127.0.0.1:9901` or `unix:/path`; undefined: 127.0.0.1:9901. */
  readonly admin: string | undefined;
  readonly token: string | undefined;
  readonly json: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}

export type ExplainResult =
  | { readonly kind: 'explained'; readonly text: string }
  /** Exit code 1: a failure that can be fixed; 2: an invalid command line. */
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 1 | 2 };

const DEFAULT_ADMIN_ADDRESS = '127.0.0.1:9901';
const REQUEST_TIMEOUT: Millis = 5000;
/** An explanation takes a few kilobytes; a larger response does not come from Tidegate. */
const MAX_BYTES = 1024 * 1024;

export async function explainRequest(options: ExplainOptions): Promise<ExplainResult> {
  const { id, admin = DEFAULT_ADMIN_ADDRESS, token, json, width } = options;
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
      path: `/explain/${encodeURIComponent(id)}`,
      method: 'GET',
      headers: { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      headersTimeout: REQUEST_TIMEOUT,
      bodyTimeout: REQUEST_TIMEOUT,
      signal: AbortSignal.timeout(2 * REQUEST_TIMEOUT),
    });
    const text = await readText(body);
    const payload = parseJson(text);
    if (statusCode === 200 && isExplanation(payload)) {
      return { kind: 'explained', text: json ? `${JSON.stringify(payload)}\n` : renderExplanation(payload, width) };
    }
    return fail(describeStatus(statusCode, payload, { id, admin, hasToken: token !== undefined }));
  } catch (error) {
    return fail(describeUnreachable(admin, error));
  } finally {
    await dispatcher.destroy();
  }
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
  { id, admin, hasToken }: { readonly id: string; readonly admin: string; readonly hasToken: boolean },
): string {
  if (status === 401) {
    const remedy = hasToken
      ? 'the token given is not the one of admin.token'
      : 'set it with --token or TIDEGATE_ADMIN_TOKEN';
    return `the admin port at ${admin} requires a token: ${remedy}`;
  }
  const detail = detailOf(payload);
  // A 404 without a problem detail comes from another program.
  if (status === 404 && detail !== undefined) return `${id}: ${detail}`;
  const suffix = detail === undefined ? '' : ` (${detail})`;
  return `${admin} answered with ${status}${suffix}: is this the admin port of tidegate?`;
}

function describeUnreachable(admin: string, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no response';
  const check = 'is tidegate running, and is this its admin port (admin in its configuration, or --admin of serve)?';
  return `the admin port at ${admin} cannot be reached (${code}): ${check}`;
}

function fail(message: string): ExplainResult {
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

/** Checks what rendering needs: the proxy may be of another version. */
function isExplanation(payload: unknown): payload is Explanation {
  if (typeof payload !== 'object' || payload === null || !('steps' in payload) || !Array.isArray(payload.steps)) {
    return false;
  }
  const steps: readonly unknown[] = payload.steps;
  const areSteps = steps.every(
    (step) =>
      typeof step === 'object' &&
      step !== null &&
      ['text', 'what'].every((name) => typeof Reflect.get(step, name) === 'string') &&
      typeof Reflect.get(step, 'at') === 'number',
  );
  const areStrings = ['id', 'at', 'method', 'path', 'route', 'upstream', 'outcome'].every(
    (name) => typeof Reflect.get(payload, name) === 'string',
  );
  return areSteps && areStrings && 'client' in payload && typeof payload.client === 'object' && payload.client !== null;
}
