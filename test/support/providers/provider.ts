/** A provider on a socket: what it refuses, what it charges and remembers, and what goes wrong after a charge. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { LimitModel } from '../../../src/simulator/limit-models/limit-model.ts';

export interface Asked {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Of the body, where that is a JSON object; else empty. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Said {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** What goes wrong with an order: before anything is done, or after. */
export type Fault =
  | 'reset-after'
  | 'hang-after'
  /** The provider's own failure, after the charge. */
  | '500-after'
  /** Answered so instead, and nothing is done. */
  | Said;

export interface Rules {
  /** Its limits, and whatever else it turns away before anything is done. */
  readonly refuse?: (asked: Asked, now: number) => Said | undefined;
  /** What orders something; all else is a read. */
  readonly isOrder?: (asked: Asked) => boolean;
  /** The key that it recognises; undefined where it sees none. */
  readonly keyOf?: (asked: Asked) => string | undefined;
  /** To an order whose key is under way. */
  readonly busy?: Said;
  /** Which answers are told again to the same key. */
  readonly stores?: (status: number) => boolean;
  /** How long an order takes, in ms. */
  readonly takes?: number;
  /** Of a read, and of an order that went well. */
  readonly answer?: (asked: Asked) => Said;
}

export interface Provider {
  readonly url: string;
  /** Answers so far by status, 0 for connections that it broke off; refusals of `refuse` among them. */
  readonly answered: ReadonlyMap<number, number>;
  /** What `refuse` has turned away. */
  readonly refused: () => number;
  /** What was let in, by path. */
  readonly accepted: ReadonlyMap<string, number>;
  /** Times of arrival, in ms, of all that came. */
  readonly arrivals: readonly number[];
  /** How often an intent, the header X-Intent, was charged. */
  readonly charges: ReadonlyMap<string, number>;
  /** The next attempts of an intent meet these, in turn. */
  readonly plan: (intent: string, ...faults: Fault[]) => void;
}

/** Closed when the test ends. */
export async function startProvider(rules: Rules): Promise<Provider> {
  const { refuse, isOrder = () => false, keyOf = () => undefined, stores = (status) => status < 300 } = rules;
  const { busy = { status: 409 }, takes = 0, answer = () => ({ status: 200, body: { ok: true } }) } = rules;
  const answered = new Map<number, number>();
  const accepted = new Map<string, number>();
  const arrivals: number[] = [];
  const charges = new Map<string, number>();
  const faults = new Map<string, Fault[]>();
  /** Undefined while it is under way. */
  const byKey = new Map<string, Said | undefined>();
  let refused = 0;

  const say = (response: ServerResponse, { status, headers = {}, body = {} }: Said): void => {
    count(answered, status);
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
  const order = (asked: Asked, response: ServerResponse): void => {
    const key = keyOf(asked);
    if (key !== undefined && byKey.has(key)) return say(response, byKey.get(key) ?? busy);
    const intent = String(asked.headers['x-intent'] ?? 'nameless');
    const fault = faults.get(intent)?.shift();
    if (typeof fault === 'object') return say(response, fault);
    if (key !== undefined) byKey.set(key, undefined);
    if (takes > 0) setTimeout(() => finish(asked, response, key, intent, fault), takes);
    else finish(asked, response, key, intent, fault);
  };
  const finish = (
    asked: Asked,
    response: ServerResponse,
    key: string | undefined,
    intent: string,
    fault: Exclude<Fault, Said> | undefined,
  ): void => {
    count(charges, intent);
    const done = fault === '500-after' ? { status: 500 } : answer(asked);
    if (key !== undefined && stores(done.status)) byKey.set(key, done);
    else if (key !== undefined) byKey.delete(key);
    if (fault === 'reset-after') {
      count(answered, 0);
      response.socket?.resetAndDestroy();
    } else if (fault !== 'hang-after') {
      say(response, done);
    }
  };

  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const text = Buffer.concat(chunks).toString();
      const [path = ''] = url.split('?', 1);
      const asked = { method, path, headers, text, body: parse(text) };
      const now = performance.now();
      arrivals.push(now);
      const refusal = refuse?.(asked, now);
      if (refusal !== undefined) {
        refused += 1;
        return say(response, refusal);
      }
      count(accepted, path);
      return isOrder(asked) ? order(asked, response) : say(response, answer(asked));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    answered,
    refused: () => refused,
    accepted,
    arrivals,
    charges,
    plan: (intent, ...planned) => {
      faults.set(intent, planned);
    },
  };
}

/** What a limit says to one request: undefined, or how long to wait, in ms. */
export function ask(model: LimitModel, now: number): number | undefined {
  const admission = model.arrive(now);
  return admission.accepted ? undefined : admission.retryAfter;
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
