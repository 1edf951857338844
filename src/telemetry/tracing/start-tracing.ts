import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { ExchangeObserver } from '../../core/exchange/exchange-observer.ts';
import { type ExportOptions, logSdkProblems, makeResource, shutDownInTime } from '../otlp/otlp-sdk.ts';
import { SpanObserver } from './span-observer.ts';

export interface Tracing {
  readonly observer: ExchangeObserver;
  /** Exports the remaining spans, within a bounded time. */
  close(): Promise<void>;
}

/** Exports spans to a collector by OTLP over HTTP, configured by the variables of OpenTelemetry; registers no global provider. */
export function startTracing(options: ExportOptions): Tracing {
  logSdkProblems(options);
  const provider = new BasicTracerProvider({
    resource: makeResource(options),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  return {
    observer: new SpanObserver(provider.getTracer('tidegate', options.version)),
    close: () => shutDownInTime(provider),
  };
}
