import type { Attributes, Context, Span, SpanContext, Tracer } from '@opentelemetry/api';
import { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type {
  ExchangeDescription,
  TraceStep,
  TraceContext,
  ObservedExchange,
  ExchangeObserver,
} from '../../core/exchange/exchange-observer.ts';
import {
  outcomeAttributes,
  clientSpanAttributes,
  serverSpanEndAttributes,
  spanEventOf,
  spanMethod,
  rejectedSpanAttributes,
  serverSpanAttributes,
  endpointAttributes,
} from './span-attributes.ts';

/** A traced request: a server span, and a client span for each attempt. */
class RequestTrace implements TraceContext {
  readonly serverSpan: Span;
  readonly context: Context;
  readonly description: ExchangeDescription;
  clientSpan: Span | undefined;
  outgoing: readonly string[] = [];

  constructor(server: Span, description: ExchangeDescription) {
    this.serverSpan = server;
    this.context = trace.setSpan(ROOT_CONTEXT, server);
    this.description = description;
  }

  get traceId(): string {
    return this.serverSpan.spanContext().traceId;
  }

  get spanId(): string {
    return this.serverSpan.spanContext().spanId;
  }
}

/** Creates spans of exchanges, following OpenTelemetry's conventions for HTTP. */
export class SpanObserver implements ExchangeObserver {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  onStart(exchange: ObservedExchange): void {
    const description = exchange.describe();
    const { method, routePath, traceparent, tracestate } = description;
    const server = this.#tracer.startSpan(
      `${spanMethod(method)} ${routePath}`,
      { kind: SpanKind.SERVER, attributes: serverSpanAttributes(description) },
      parentContext(traceparent, tracestate),
    );
    exchange.trace = new RequestTrace(server, description);
  }

  onSend({ trace: traced }: ObservedExchange, attempt: number): void {
    if (!(traced instanceof RequestTrace)) return;
    const { description, context } = traced;
    const name = spanMethod(description.method);
    traced.clientSpan = this.#tracer.startSpan(
      name,
      { kind: SpanKind.CLIENT, attributes: clientSpanAttributes(description, attempt) },
      context,
    );
    traced.outgoing = traceHeaders(traced.clientSpan.spanContext());
  }

  onOutcome(exchange: ObservedExchange, _attempt: number, outcome: AttemptOutcome): void {
    const { trace: traced } = exchange;
    if (!(traced instanceof RequestTrace) || traced.clientSpan === undefined) return;
    const { clientSpan } = traced;
    traced.clientSpan = undefined;
    const { endpoint, origin, cause } = exchange.lastAttempt();
    clientSpan.setAttributes({
      ...endpointAttributes(traced.description, endpoint, origin),
      ...outcomeAttributes(outcome),
    });
    if (outcome.kind === 'error') {
      clientSpan.setStatus({ code: SpanStatusCode.ERROR, message: cause ?? outcome.reason });
    } else if (outcome.status >= 400) clientSpan.setStatus({ code: SpanStatusCode.ERROR });
    clientSpan.end();
  }

  onStep({ trace: traced }: ObservedExchange, step: TraceStep): void {
    if (!(traced instanceof RequestTrace)) return;
    const event = spanEventOf(step);
    traced.serverSpan.addEvent(event.name, event.attributes);
  }

  onEnd({ trace: traced }: ObservedExchange, record: RequestRecord): void {
    if (!(traced instanceof RequestTrace)) return;
    traced.clientSpan?.end();
    endSpan(traced.serverSpan, record, serverSpanEndAttributes(record));
  }

  onRefused(record: RequestRecord, traceparent: string | undefined): void {
    // Spans of these would add load to an overloaded process.
    if (record.reason === 'overloaded') return;
    const span = this.#tracer.startSpan(
      record.method === '' ? 'HTTP' : spanMethod(record.method),
      { kind: SpanKind.SERVER, startTime: Date.now() - record.took, attributes: rejectedSpanAttributes(record) },
      parentContext(traceparent, undefined),
    );
    endSpan(span, record, serverSpanEndAttributes(record));
  }
}

function endSpan(span: Span, record: RequestRecord, attributes: Attributes): void {
  span.setAttributes(attributes);
  if (record.status >= 500 || record.isTruncated) {
    span.setStatus({ code: SpanStatusCode.ERROR, ...(record.detail === undefined ? {} : { message: record.detail }) });
  }
  span.end();
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:$|-)/;

/** The trace context of the client, if it is well formed. The SDK starts a new trace where an id is all zeros. */
function parentContext(traceparent: string | undefined, tracestate: string | undefined): Context {
  const [, traceId, spanId, flags = '00'] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & SAMPLED_FLAG,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}

/** The only flag of Trace Context that is supported here. */
const SAMPLED_FLAG = 1;

function traceHeaders({ traceId, spanId, traceFlags, traceState }: SpanContext): string[] {
  const headers = [
    'traceparent',
    `00-${traceId}-${spanId}-${(traceFlags & SAMPLED_FLAG) === SAMPLED_FLAG ? '01' : '00'}`,
  ];
  const state = traceState?.serialize() ?? '';
  if (state !== '') headers.push('tracestate', state);
  return headers;
}
