/** Attributes of spans: OpenTelemetry's semantic conventions for HTTP, 1.23 and later, and our own under `tidegate.`. */
import type { Attributes } from '@opentelemetry/api';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeDescription, TraceStep } from '../../core/exchange/exchange-observer.ts';

const SPAN_METHODS: ReadonlySet<string> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'QUERY',
  'TRACE',
]);

/** The method in a span name; `HTTP` for unknown methods, to bound the number of names. */
export function spanMethod(method: string): string {
  return SPAN_METHODS.has(method) ? method : 'HTTP';
}

/** Attributes of a server span at its start. No address, query or header: any of them may contain a client key. */
export function serverSpanAttributes(description: ExchangeDescription): Attributes {
  const { id, method, path, routePath, upstream, client, scheme, version } = description;
  return {
    ...methodAttributes(method),
    'url.path': path,
    'url.scheme': scheme,
    'http.route': routePath,
    'network.protocol.version': version === '2.0' ? '2' : version,
    'tidegate.request_id': id,
    'tidegate.client': client,
    'tidegate.upstream': upstream,
  };
}

/** Attributes of a server span for a request that never became an exchange. */
export function rejectedSpanAttributes({ id, method, path }: RequestRecord): Attributes {
  return { ...methodAttributes(method), 'url.path': path, 'tidegate.request_id': id };
}

/** Attributes of a server span at its end. */
export function serverSpanEndAttributes(record: RequestRecord): Attributes {
  const { status, outcome, reason, attempts, polls, queueTime, sleepTime } = record;
  return {
    ...(status === 0 ? {} : { 'http.response.status_code': status }),
    ...(status >= 500 ? { 'error.type': String(status) } : {}),
    'tidegate.outcome': outcome,
    ...(reason === undefined ? {} : { 'tidegate.reason': reason }),
    'tidegate.attempts': attempts,
    ...(polls === undefined ? {} : { 'tidegate.polls': polls }),
    'tidegate.queued_seconds': queueTime / 1000,
    'tidegate.waited_seconds': sleepTime / 1000,
  };
}

/** Attributes of a client span at its start. @param attempt from 1 */
export function clientSpanAttributes({ method, upstream }: ExchangeDescription, attempt: number): Attributes {
  return {
    ...methodAttributes(method),
    'tidegate.upstream': upstream,
    ...(attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {}),
  };
}

/** Attributes of the endpoint. @param origin such as `https://api.example.com` */
export function endpointAttributes(
  { path }: ExchangeDescription,
  endpoint: string | undefined,
  origin: string | undefined,
): Attributes {
  if (endpoint === undefined || origin === undefined) return {};
  if (endpoint.startsWith('unix:')) return { 'server.address': endpoint.slice('unix:'.length) };
  const { hostname, port, protocol } = new URL(origin);
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    'url.full': `${origin}${path}`,
  };
}

/** Attributes of the outcome of an attempt. */
export function outcomeAttributes(outcome: AttemptOutcome): Attributes {
  if (outcome.kind === 'error') return { 'error.type': outcome.reason };
  const { status } = outcome;
  return { 'http.response.status_code': status, ...(status >= 400 ? { 'error.type': String(status) } : {}) };
}

/** The span event of a step. */
export function spanEventOf(step: TraceStep): { readonly name: string; readonly attributes: Attributes } {
  const name = `tidegate.${step.what}`;
  switch (step.what) {
    case 'decided': {
      const { estimatedWait, limit } = step.details;
      return {
        name,
        attributes: omitUndefined({
          'tidegate.decision': step.decision,
          'tidegate.reason': step.why,
          'tidegate.estimate_seconds': inSeconds(estimatedWait),
          'tidegate.rate': limit !== undefined && Number.isFinite(limit.rate) ? limit.rate : undefined,
          'tidegate.limit_state': limit?.state,
        }),
      };
    }
    case 'joined':
      return {
        name,
        attributes: { 'tidegate.waited_seconds': step.waited / 1000, 'tidegate.equal_request_id': step.equalId },
      };
    case 'claimed':
    case 'dequeued':
      return {
        name,
        attributes: omitUndefined({ 'tidegate.waited_seconds': step.waited / 1000, 'tidegate.reason': step.why }),
      };
    case 'retry': {
      const { reason, source, delay } = step.retry;
      const attributes = {
        'tidegate.reason': reason,
        'tidegate.source': source,
        'tidegate.delay_seconds': delay / 1000,
      };
      return { name, attributes };
    }
    case 'poll': {
      const { source, delay } = step.poll;
      const attributes = {
        'tidegate.reason': step.after,
        'tidegate.source': source,
        'tidegate.delay_seconds': delay / 1000,
      };
      return { name, attributes };
    }
    case 'unpolled':
    case 'denied':
      return { name, attributes: { 'tidegate.reason': step.why } };
    case 'waited':
      return { name, attributes: { 'tidegate.waited_seconds': step.slept / 1000 } };
    case 'gone':
      return { name, attributes: { 'tidegate.during': step.during } };
    case 'fallback':
      return { name, attributes: { 'tidegate.fallback': step.to, 'tidegate.reason': step.why } };
    case 'draining':
    case 'answered':
      return { name, attributes: {} };
  }
}

function methodAttributes(method: string): Attributes {
  if (method === '') return {};
  if (SPAN_METHODS.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method };
}

function inSeconds(ms: number | undefined): number | undefined {
  return ms !== undefined && Number.isFinite(ms) ? ms / 1000 : undefined;
}

function omitUndefined(attributes: Readonly<Record<string, string | number | undefined>>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
