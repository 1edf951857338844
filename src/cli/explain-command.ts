/** `tidegate explain ID`: asks the admin port of a running proxy, and says what it says, for people. */
import { Agent } from 'undici';
import { readAddress } from '../config/values/listen-address.ts';
import type { Explanation } from '../telemetry/explanations/build-explanation.ts';
import { renderExplanation } from '../telemetry/explanations/render-explanation.ts';
import type { Millis } from '../core/exchange/attempt-outcome.ts';

export interface ExplainOptions {
  readonly id: string;
  /** `http://127.0.0.1:9901`, `127.0.0.1:9901` or `unix:/path`; undefined: the usual one. */
  readonly admin: string | undefined;
  readonly token: string | undefined;
  readonly json: boolean;
  /** Of the terminal, in columns. */
  readonly width: number;
}

export type Explained =
  | { readonly kind: 'explained'; readonly text: string }
  /** What to say, and the exit code: 1 for what can be mended, 2 for a command that makes no sense. */
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 1 | 2 };

const USUAL = '127.0.0.1:9901';
const PATIENCE: Millis = 5000;
/** An explanation is some kilobytes. */
const MOST_BYTES = 1024 * 1024;

export async function explainRequest(options: ExplainOptions): Promise<Explained> {
  const { id, admin = USUAL, token, json, width } = options;
  const port = placeOf(admin);
  if (port === undefined) {
    const expected = 'http://host:port, host:port or unix:/path';
    return { kind: 'failed', message: `--admin: '${admin}' is no address; expected ${expected}`, exitCode: 2 };
  }
  const dispatcher = new Agent({ connect: port.socketPath === undefined ? {} : { socketPath: port.socketPath } });
  try {
    const { statusCode, body } = await dispatcher.request({
      origin: port.origin,
      path: `/explain/${encodeURIComponent(id)}`,
      method: 'GET',
      headers: { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      headersTimeout: PATIENCE,
      bodyTimeout: PATIENCE,
      signal: AbortSignal.timeout(2 * PATIENCE),
    });
    const text = await readText(body);
    const told = parse(text);
    if (statusCode === 200 && isExplanation(told)) {
      return { kind: 'explained', text: json ? `${JSON.stringify(told)}\n` : renderExplanation(told, width) };
    }
    return fail(tellStatus(statusCode, told, { id, admin, hasToken: token !== undefined }));
  } catch (error) {
    return fail(tellUnreachable(admin, error));
  } finally {
    await dispatcher.destroy();
  }
}

interface Place {
  readonly origin: string;
  readonly socketPath: string | undefined;
}

function placeOf(admin: string): Place | undefined {
  if (/^https?:\/\//i.test(admin)) {
    return URL.canParse(admin) ? { origin: new URL(admin).origin, socketPath: undefined } : undefined;
  }
  const reading = readAddress(admin);
  if (!reading.ok) return undefined;
  if (reading.value.kind === 'unix') return { origin: 'http://localhost', socketPath: reading.value.path };
  return { origin: `http://${admin}`, socketPath: undefined };
}

function tellStatus(
  status: number,
  told: unknown,
  { id, admin, hasToken }: { readonly id: string; readonly admin: string; readonly hasToken: boolean },
): string {
  if (status === 401) {
    const how = hasToken
      ? 'the token is not that of admin.token'
      : 'give its token with --token or TIDEGATE_ADMIN_TOKEN';
    return `the admin port at ${admin} asks for a token: ${how}`;
  }
  const detail = detailOf(told);
  // A problem of ours; who says 404 otherwise is somebody else.
  if (status === 404 && detail !== undefined) return `${id}: ${detail}`;
  const said = detail === undefined ? '' : ` (${detail})`;
  return `${admin} answered with ${status}${said}: is this the admin port of tidegate?`;
}

function tellUnreachable(admin: string, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
  const check = 'is tidegate running, and is this its admin port (key admin of the configuration, --admin of serve)?';
  return `the admin port at ${admin} cannot be reached (${code}): ${check}`;
}

function fail(message: string): Explained {
  return { kind: 'failed', message, exitCode: 1 };
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MOST_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function detailOf(told: unknown): string | undefined {
  if (typeof told !== 'object' || told === null || !('detail' in told)) return undefined;
  return typeof told.detail === 'string' ? told.detail : undefined;
}

/** It comes from a program of ours, of perhaps another version: enough to be rendered. */
function isExplanation(told: unknown): told is Explanation {
  if (typeof told !== 'object' || told === null || !('steps' in told) || !Array.isArray(told.steps)) return false;
  const steps: readonly unknown[] = told.steps;
  const areSteps = steps.every(
    (step) =>
      typeof step === 'object' &&
      step !== null &&
      ['text', 'what'].every((name) => typeof Reflect.get(step, name) === 'string') &&
      typeof Reflect.get(step, 'at') === 'number',
  );
  const areWords = ['id', 'at', 'method', 'path', 'route', 'upstream', 'outcome'].every(
    (name) => typeof Reflect.get(told, name) === 'string',
  );
  return areSteps && areWords && 'client' in told && typeof told.client === 'object' && told.client !== null;
}
