import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import type { Millis } from '../../core/scalars.ts';
import type { ExchangeObserver } from '../../core/exchange/exchange-observer.ts';
import { SpanObserver } from './span-observer.ts';

export interface Tracing {
  readonly observer: ExchangeObserver;
  /** Exports the remaining spans, for SHUTDOWN_TIMEOUT at most. */
  close(): Promise<void>;
}

export interface TracingOptions {
  readonly logger: Logger;
  readonly version: string;
  /** Identifies this process: each worker exports its own traces. */
  readonly instance: string;
}

/** The collector may be unreachable: shutdown waits no longer than this. */
const SHUTDOWN_TIMEOUT: Millis = 1500;
/** Interval between log lines about the same problem. */
const LOG_INTERVAL: Millis = 60_000;

/** Exports spans to a collector by OTLP over HTTP, configured by the variables of OpenTelemetry; registers no global provider. */
export function startTracing({ logger, version, instance }: TracingOptions): Tracing {
  logSdkProblems(logger);
  const own = resourceFromAttributes({
    'service.name': 'tidegate',
    'service.version': version,
    'service.instance.id': instance,
  });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  return {
    observer: new SpanObserver(provider.getTracer('tidegate', version)),
    close: async () => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, SHUTDOWN_TIMEOUT);
      });
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

/** Logs problems of the SDK, each kind once a minute. */
function logSdkProblems(logger: Logger): void {
  const loggedAt = new Map<string, Millis>();
  const logProblem = (text: string): void => {
    const problem = extractMessage(text);
    const kind = problem.slice(0, 40);
    const now = performance.now();
    if (now - (loggedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < LOG_INTERVAL) return;
    if (loggedAt.size > 100) loggedAt.clear();
    loggedAt.set(kind, now);
    logger.warn({ problem }, 'trace export failed');
  };
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: logProblem, warn: logProblem, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** The SDK passes errors as JSON with all their fields, stacks included (@opentelemetry/core 2.12, loggingErrorHandler). */
function extractMessage(text: string): string {
  try {
    const error: unknown = JSON.parse(text);
    const message: unknown = typeof error === 'object' && error !== null && Reflect.get(error, 'message');
    if (typeof message === 'string') return message.slice(0, MAX_MESSAGE_LENGTH);
  } catch {
    // Not JSON: the text is the message.
  }
  return text.slice(0, MAX_MESSAGE_LENGTH);
}

const MAX_MESSAGE_LENGTH = 300;
