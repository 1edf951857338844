/** What spans say: OpenTelemetry's semantic conventions for HTTP 1.23 and later, and our own under `tidegate.`. */
import type { Attributes } from '@opentelemetry/api';
import type { RequestRecord } from '../../core/events/proxy-events.ts';
import type { Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Description, Step } from '../../core/exchange/exchange-observer.ts';

const KNOWN: ReadonlySet<string> = new Set([
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

/** Few words, whatever clients say: in names of spans, others are `HTTP`. */
export function methodOf(method: string): string {
  return KNOWN.has(method) ? method : 'HTTP';
}

/** Of our span as a server, as it begins. No address, no query, no header: keys of clients may be in any of them. */
export function requestOf(described: Description): Attributes {
  const { id, method, path, routePath, upstream, client, scheme, version } = described;
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

/** Of one that never became an exchange. */
export function refusalOf({ id, method, path }: RequestRecord): Attributes {
  return { ...methodAttributes(method), 'url.path': path, 'tidegate.request_id': id };
}

/** As it ends. */
export function endOf(record: RequestRecord): Attributes {
  const { status, outcome, reason, attempts, polls, queued, slept } = record;
  return {
    ...(status === 0 ? {} : { 'http.response.status_code': status }),
    ...(status >= 500 ? { 'error.type': String(status) } : {}),
    'tidegate.outcome': outcome,
    ...(reason === undefined ? {} : { 'tidegate.reason': reason }),
    'tidegate.attempts': attempts,
    ...(polls === undefined ? {} : { 'tidegate.polls': polls }),
    'tidegate.queued_seconds': queued / 1000,
    'tidegate.waited_seconds': slept / 1000,
  };
}

/** Of our span as a client, as it begins. @param attempt from 1 */
export function attemptOf({ method, upstream }: Description, attempt: number): Attributes {
  return {
    ...methodAttributes(method),
    'tidegate.upstream': upstream,
    ...(attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {}),
  };
}

/** Where it went. @param origin `https://api.example.com` */
export function serverOf({ path }: Description, endpoint: string | undefined, origin: string | undefined): Attributes {
  if (endpoint === undefined || origin === undefined) return {};
  if (endpoint.startsWith('unix:')) return { 'server.address': endpoint.slice('unix:'.length) };
  const { hostname, port, protocol } = new URL(origin);
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    'url.full': `${origin}${path}`,
  };
}

/** What came of it. */
export function answerOf(outcome: Outcome): Attributes {
  if (outcome.kind === 'error') return { 'error.type': outcome.reason };
  const { status } = outcome;
  return { 'http.response.status_code': status, ...(status >= 400 ? { 'error.type': String(status) } : {}) };
}

/** What happened between. */
export function eventOf(step: Step): { readonly name: string; readonly attributes: Attributes } {
  const name = `tidegate.${step.what}`;
  switch (step.what) {
    case 'decided': {
      const { estimate, limit } = step.grounds;
      return {
        name,
        attributes: defined({
          'tidegate.decision': step.decision,
          'tidegate.reason': step.why,
          'tidegate.estimate_seconds': inSeconds(estimate),
          'tidegate.rate': limit !== undefined && Number.isFinite(limit.rate) ? limit.rate : undefined,
          'tidegate.limit_state': limit?.state,
        }),
      };
    }
    case 'claimed':
    case 'dequeued':
      return {
        name,
        attributes: defined({ 'tidegate.waited_seconds': step.waited / 1000, 'tidegate.reason': step.why }),
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
    case 'draining':
    case 'answered':
      return { name, attributes: {} };
  }
}

function methodAttributes(method: string): Attributes {
  if (method === '') return {};
  if (KNOWN.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method };
}

function inSeconds(ms: number | undefined): number | undefined {
  return ms !== undefined && Number.isFinite(ms) ? ms / 1000 : undefined;
}

function defined(attributes: Readonly<Record<string, string | number | undefined>>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
