/** What the exports of traces and of metrics have in common. */
import { diag, DiagLogLevel } from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import type { Logger } from 'pino';
import type { Millis } from '../../core/scalars.ts';

export interface ExportOptions {
  readonly logger: Logger;
  readonly version: string;
  /** Identifies this process: each worker exports its own traces. */
  readonly instance: string;
}

/** The collector may be unreachable: the end of traces, then that of metrics, waits no longer than this. Both must fit in EXIT_GRACE. */
const SHUTDOWN_TIMEOUT: Millis = 900;
/** Interval between log lines about the same problem. */
const LOG_INTERVAL: Millis = 60_000;
const MAX_MESSAGE_LENGTH = 300;

/** The attributes of this process; the variables of OpenTelemetry take precedence. */
export function makeResource({ version, instance }: ExportOptions): Resource {
  const own = resourceFromAttributes({
    'service.name': 'tidegate',
    'service.version': version,
    'service.instance.id': instance,
  });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

/** Exports what remains, for SHUTDOWN_TIMEOUT at most. */
export async function shutDownInTime(provider: { shutdown(): Promise<void> }): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, SHUTDOWN_TIMEOUT);
  });
  await Promise.race([provider.shutdown().catch(() => undefined), late]);
  clearTimeout(timer);
}

/** Logs problems of the SDK, each kind once a minute. */
export function logSdkProblems({ logger }: ExportOptions): void {
  const loggedAt = new Map<string, Millis>();
  const logProblem = (text: string): void => {
    const problem = redactUrls(extractMessage(text)).slice(0, MAX_MESSAGE_LENGTH);
    const kind = problem.slice(0, 40);
    const now = performance.now();
    if (now - (loggedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < LOG_INTERVAL) return;
    if (loggedAt.size > 100) loggedAt.clear();
    loggedAt.set(kind, now);
    logger.warn({ problem }, 'OTLP export failed');
  };
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: logProblem, warn: logProblem, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** A URL of a collector may contain a password. */
function redactUrls(text: string): string {
  const begin = text.indexOf('//');
  const end = text.lastIndexOf('@');
  return begin === -1 || end < begin ? text : `${text.slice(0, begin)}//***${text.slice(end)}`;
}

/** The SDK passes errors as JSON with all their fields, stacks included (@opentelemetry/core 2.12, loggingErrorHandler). */
function extractMessage(text: string): string {
  try {
    const error: unknown = JSON.parse(text);
    const message: unknown = typeof error === 'object' && error !== null && Reflect.get(error, 'message');
    if (typeof message === 'string') return message;
  } catch {
    // Not JSON: the text is the message.
  }
  return text;
}
