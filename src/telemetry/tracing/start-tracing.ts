import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Watcher } from '../../core/exchange/exchange-observer.ts';
import { SpanWatcher } from './span-observer.ts';

export interface Tracing {
  readonly watcher: Watcher;
  /** Sends what is left, if that takes no longer than a moment. */
  close(): Promise<void>;
}

export interface TracingOptions {
  readonly logger: Logger;
  readonly version: string;
  /** Of this process among all: workers trace each for itself. */
  readonly instance: string;
}

/** Who collects may be gone: nobody waits for longer than this to be let go. */
const LAST_SPANS: Millis = 1500;
/** One that cannot be reached is told of that often. */
const TOLD_EVERY: Millis = 60_000;

/** Spans to a collector by OTLP over HTTP, as the variables of OpenTelemetry say; never a global one. */
export function startTracing({ logger, version, instance }: TracingOptions): Tracing {
  tellTrouble(logger);
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
    watcher: new SpanWatcher(provider.getTracer('tidegate', version)),
    close: async () => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, LAST_SPANS);
      });
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

/** What the SDK complains about, each kind once a minute. */
function tellTrouble(logger: Logger): void {
  const told = new Map<string, Millis>();
  const tell = (said: string): void => {
    const problem = messageOf(said);
    const kind = problem.slice(0, 40);
    const now = performance.now();
    if (now - (told.get(kind) ?? Number.NEGATIVE_INFINITY) < TOLD_EVERY) return;
    if (told.size > 100) told.clear();
    told.set(kind, now);
    logger.warn({ problem }, 'trouble with traces');
  };
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** Errors come as JSON of all that they have, stacks too (@opentelemetry/core 2.12, loggingErrorHandler). */
function messageOf(said: string): string {
  try {
    const error: unknown = JSON.parse(said);
    const message: unknown = typeof error === 'object' && error !== null && Reflect.get(error, 'message');
    if (typeof message === 'string') return message.slice(0, LONGEST);
  } catch {
    // A plain text.
  }
  return said.slice(0, LONGEST);
}

const LONGEST = 300;
