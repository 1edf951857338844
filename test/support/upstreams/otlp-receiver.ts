/** An OpenTelemetry collector that records spans and metrics received as JSON over HTTP. */
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

/** The last value of a series; of a histogram, its counts. */
export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly kind: 'sum' | 'gauge' | 'histogram';
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly value:
    | number
    | { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number };
  /** Resource attributes of the exporting process. */
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface OtlpReceiver {
  /** The value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  /** In order of arrival. */
  readonly spans: readonly ReceivedSpan[];
  /** Each export of metrics. */
  readonly metricExports: readonly (readonly ReceivedMetric[])[];
  /** The export requests. */
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
}

interface MetricsWire {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] };
    readonly scopeMetrics: readonly { readonly metrics: readonly WireMetric[] }[];
  }[];
}
interface WireMetric {
  readonly name: string;
  readonly unit: string;
  readonly sum?: { readonly dataPoints: readonly WirePoint[]; readonly isMonotonic: boolean };
  readonly gauge?: { readonly dataPoints: readonly WirePoint[] };
  readonly histogram?: { readonly dataPoints: readonly WireHistogramPoint[] };
}
interface WirePoint {
  readonly attributes: readonly WireAttribute[];
  readonly asDouble: number;
}
interface WireHistogramPoint {
  readonly attributes: readonly WireAttribute[];
  readonly explicitBounds: readonly number[];
  readonly bucketCounts: readonly number[];
  readonly sum: number;
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
  const metricExports: ReceivedMetric[][] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const { url } = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers });
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
      if (request.url === '/v1/metrics') metricExports.push(readMetrics(body as MetricsWire));
      else spans.push(...readSpans(body as Wire));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  return { url, spans, metricExports, requests };
}

function readMetrics({ resourceMetrics }: MetricsWire): ReceivedMetric[] {
  return resourceMetrics.flatMap(({ resource, scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics }) =>
      metrics.flatMap((metric) => readMetric(metric, readAttributes(resource.attributes))),
    ),
  );
}

function readMetric(
  { name, unit, sum, gauge, histogram }: WireMetric,
  resource: Readonly<Record<string, unknown>>,
): ReceivedMetric[] {
  const kind = sum === undefined ? 'gauge' : 'sum';
  const points = (sum ?? gauge)?.dataPoints ?? [];
  return [
    ...points.map((point) => {
      return {
        name,
        unit,
        kind,
        attributes: readAttributes(point.attributes),
        value: point.asDouble,
        resource,
      } as const;
    }),
    ...(histogram?.dataPoints ?? []).map(({ attributes, explicitBounds: bounds, bucketCounts: counts, sum: total }) => {
      const value = { bounds, counts, sum: total };
      return { name, unit, kind: 'histogram', attributes: readAttributes(attributes), value, resource } as const;
    }),
  ];
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
