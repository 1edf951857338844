/** A payment provider with limits, charges, stored keys and faults, over real sockets. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LimitModel } from '../../../src/simulator/limit-models/limit-model.ts';
import { atEnd } from '../at-end.ts';

export interface ProviderRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The members of a JSON object body; otherwise empty. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ProviderResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A fault of an order, before or after the charge. */
export type ProviderFault =
  | 'reset-after'
  | 'hang-after'
  /** The provider's own failure, after the charge. */
  | '500-after'
  /** This response without a charge. */
  | ProviderResponse;

export interface ProviderRules {
  /** Limits and other rejections before any action. */
  readonly refuse?: (asked: ProviderRequest, now: number) => ProviderResponse | undefined;
  /** Selects orders; all other requests are reads. */
  readonly isOrder?: (asked: ProviderRequest) => boolean;
  /** Returns the recognised key; undefined if there is none. */
  readonly keyOf?: (asked: ProviderRequest) => string | undefined;
  /** The response to an order whose key is in progress. */
  readonly busy?: ProviderResponse;
  /** Which responses are stored and repeated for the same key. */
  readonly stores?: (status: number) => boolean;
  /** Duration of an order, in ms. */
  readonly takes?: number;
  /** The response to a read or a successful order. */
  readonly answer?: (asked: ProviderRequest) => ProviderResponse;
}

export interface ProviderFake {
  readonly url: string;
  /** Responses so far by status, including those of `refuse`; 0 counts connections that it broke. */
  readonly answered: ReadonlyMap<number, number>;
  /** Number of requests rejected by `refuse`. */
  readonly refused: () => number;
  /** Admitted requests by path. */
  readonly accepted: ReadonlyMap<string, number>;
  /** Arrival times of all requests, in ms. */
  readonly arrivals: readonly number[];
  /** How often each intent (header X-Intent) was charged. */
  readonly charges: ReadonlyMap<string, number>;
  /** Plans faults for the next attempts of an intent, in order. */
  readonly planFaults: (intent: string, ...faults: ProviderFault[]) => void;
}

/** Closed when the test ends. */
export async function startProviderFake(rules: ProviderRules): Promise<ProviderFake> {
  const { refuse, isOrder = () => false, keyOf = () => undefined, stores = (status) => status < 300 } = rules;
  const { busy = { status: 409 }, takes = 0, answer = () => ({ status: 200, body: { ok: true } }) } = rules;
  const answered = new Map<number, number>();
  const accepted = new Map<string, number>();
  const arrivals: number[] = [];
  const charges = new Map<string, number>();
  const faults = new Map<string, ProviderFault[]>();
  /** Undefined while the key is in progress. */
  const byKey = new Map<string, ProviderResponse | undefined>();
  let refused = 0;

  const say = (response: ServerResponse, { status, headers = {}, body = {} }: ProviderResponse): void => {
    count(answered, status);
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
  const order = (asked: ProviderRequest, response: ServerResponse): void => {
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
    asked: ProviderRequest,
    response: ServerResponse,
    key: string | undefined,
    intent: string,
    fault: Exclude<ProviderFault, ProviderResponse> | undefined,
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
  atEnd(async () => {
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
    planFaults: (intent, ...planned) => {
      faults.set(intent, planned);
    },
  };
}

/** Counts a request at a limit. Returns undefined if it is admitted, otherwise the wait in ms. */
export function acquireFrom(model: LimitModel, now: number): number | undefined {
  const admission = model.tryAcquire(now);
  return admission.accepted ? undefined : admission.retryAfterMs;
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
