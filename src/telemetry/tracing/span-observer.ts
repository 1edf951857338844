import type { Attributes, Context, Span, SpanContext, Tracer } from '@opentelemetry/api';
import { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { RequestRecord } from '../../core/events/proxy-events.ts';
import type { Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Description, Step, Trace, Watched, Watcher } from '../../core/exchange/exchange-observer.ts';
import { answerOf, attemptOf, endOf, eventOf, methodOf, refusalOf, requestOf, serverOf } from './span-attributes.ts';

/** A request that is traced: a span of ours as a server, and one as a client for each attempt. */
class RequestTrace implements Trace {
  readonly server: Span;
  readonly context: Context;
  readonly described: Description;
  client: Span | undefined;
  outgoing: readonly string[] = [];

  constructor(server: Span, described: Description) {
    this.server = server;
    this.context = trace.setSpan(ROOT_CONTEXT, server);
    this.described = described;
  }

  get traceId(): string {
    return this.server.spanContext().traceId;
  }
}

/** Makes spans of exchanges, after OpenTelemetry's conventions for HTTP. */
export class SpanWatcher implements Watcher {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  began(watched: Watched): void {
    const described = watched.describe();
    const { method, routePath, traceparent, tracestate } = described;
    const server = this.#tracer.startSpan(
      `${methodOf(method)} ${routePath}`,
      { kind: SpanKind.SERVER, attributes: requestOf(described) },
      parentOf(traceparent, tracestate),
    );
    watched.trace = new RequestTrace(server, described);
  }

  sending({ trace: traced }: Watched, attempt: number): void {
    if (!(traced instanceof RequestTrace)) return;
    const { described, context } = traced;
    const name = methodOf(described.method);
    traced.client = this.#tracer.startSpan(
      name,
      { kind: SpanKind.CLIENT, attributes: attemptOf(described, attempt) },
      context,
    );
    traced.outgoing = headersOf(traced.client.spanContext());
  }

  settled(watched: Watched, _attempt: number, outcome: Outcome): void {
    const { trace: traced } = watched;
    if (!(traced instanceof RequestTrace) || traced.client === undefined) return;
    const { client } = traced;
    traced.client = undefined;
    const { endpoint, origin, cause } = watched.lastAttempt();
    client.setAttributes({ ...serverOf(traced.described, endpoint, origin), ...answerOf(outcome) });
    if (outcome.kind === 'error') client.setStatus({ code: SpanStatusCode.ERROR, message: cause ?? outcome.reason });
    else if (outcome.status >= 400) client.setStatus({ code: SpanStatusCode.ERROR });
    client.end();
  }

  noted({ trace: traced }: Watched, step: Step): void {
    if (!(traced instanceof RequestTrace)) return;
    const event = eventOf(step);
    traced.server.addEvent(event.name, event.attributes);
  }

  over({ trace: traced }: Watched, record: RequestRecord): void {
    if (!(traced instanceof RequestTrace)) return;
    traced.client?.end();
    end(traced.server, record, endOf(record));
  }

  refused(record: RequestRecord, traceparent: string | undefined): void {
    // A span for each would add to what this process cannot keep up with.
    if (record.reason === 'overloaded') return;
    const span = this.#tracer.startSpan(
      record.method === '' ? 'HTTP' : methodOf(record.method),
      { kind: SpanKind.SERVER, startTime: Date.now() - record.took, attributes: refusalOf(record) },
      parentOf(traceparent, undefined),
    );
    end(span, record, endOf(record));
  }
}

function end(span: Span, record: RequestRecord, attributes: Attributes): void {
  span.setAttributes(attributes);
  if (record.status >= 500 || record.cut) {
    span.setStatus({ code: SpanStatusCode.ERROR, ...(record.detail === undefined ? {} : { message: record.detail }) });
  }
  span.end();
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:$|-)/;

/** What the client said, if it is well formed; the SDK begins a new trace where an id is all zeros. */
function parentOf(traceparent: string | undefined, tracestate: string | undefined): Context {
  const [, traceId, spanId, flags = '00'] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & SAMPLED,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}

/** The one flag of Trace Context that is understood here. */
const SAMPLED = 1;

function headersOf({ traceId, spanId, traceFlags, traceState }: SpanContext): string[] {
  const headers = ['traceparent', `00-${traceId}-${spanId}-${(traceFlags & SAMPLED) === SAMPLED ? '01' : '00'}`];
  const state = traceState?.serialize() ?? '';
  if (state !== '') headers.push('tracestate', state);
  return headers;
}
