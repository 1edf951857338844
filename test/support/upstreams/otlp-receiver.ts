/** An OpenTelemetry collector that records spans received as JSON over HTTP. */
import type { IncomingHttpHeaders } from 'node:http';
import { listen } from './http-upstream.ts';

export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  readonly kind: 'server' | 'client' | 'other';
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Resource attributes of the exporting process. */
  readonly resource: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly status: 'unset' | 'ok' | 'error';
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface OtlpReceiver {
  /** The value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  /** In order of arrival. */
  readonly spans: readonly ReceivedSpan[];
  /** The export requests. */
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
}

interface Wire {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}
interface WireAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}
interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly WireAttribute[];
  readonly events: readonly { readonly name: string; readonly attributes: readonly WireAttribute[] }[];
  readonly status: { readonly code?: number };
}

/** Closed when the test ends. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const { url } = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers });
      spans.push(...readSpans(JSON.parse(Buffer.concat(chunks).toString()) as Wire));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  return { url, spans, requests };
}

function readSpans({ resourceSpans }: Wire): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => readSpan(span, readAttributes(resource.attributes)))),
  );
}

function readSpan(span: WireSpan, resource: Readonly<Record<string, unknown>>): ReceivedSpan {
  const { name, traceId, spanId, parentSpanId, traceState, kind, events, status } = span;
  return {
    name,
    traceId,
    spanId,
    parentSpanId,
    traceState,
    kind: kind === 2 ? 'server' : kind === 3 ? 'client' : 'other',
    attributes: readAttributes(span.attributes),
    resource,
    events: events.map((event) => ({ name: event.name, attributes: readAttributes(event.attributes) })),
    status: status.code === 2 ? 'error' : status.code === 1 ? 'ok' : 'unset',
    startedAt: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
    endedAt: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
  };
}

function readAttributes(list: readonly WireAttribute[]): Record<string, unknown> {
  return Object.fromEntries(
    list.map(({ key, value }) => {
      const [[type, plain] = ['', undefined]] = Object.entries(value);
      return [key, type === 'intValue' ? Number(plain) : plain];
    }),
  );
}
