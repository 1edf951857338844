/** The observers of exchanges: explanations always, traces and the log of open writes if they are enabled. */
import type { ResourceStack } from '../resource-stack.ts';
import { ExplanationRecorder, MAX_RECORD_BYTES } from '../../telemetry/explanations/explanation-recorder.ts';
import { readExportSettings, TRACES } from '../../telemetry/otlp/export-settings.ts';
import type { ExportOptions } from '../../telemetry/otlp/otlp-sdk.ts';
import type { Tracing } from '../../telemetry/tracing/start-tracing.ts';
import type { ExchangeObserver } from '../../core/exchange/exchange-observer.ts';
import { combineObservers } from '../../core/exchange/exchange-observer.ts';
import type { OpenWriteLog } from '../../core/idempotency/open-writes.ts';
import { OpenWriteObserver } from '../../telemetry/open-write-observer.ts';
import { oldSpaceLimit } from '../../http/overload/v8-heap.ts';

export interface ExchangeObservers {
  readonly observer: ExchangeObserver;
  readonly explanations: ExplanationRecorder;
}

/** The maximum share of the heap for explanations. */
const EXPLANATIONS_HEAP_SHARE = 1 / 32;

/** @param resources gets the export of the last spans */
export async function startExchangeObservers(
  options: ExportOptions & { readonly openWrites: OpenWriteLog | undefined },
  resources: Pick<ResourceStack, 'push'>,
): Promise<ExchangeObservers> {
  const maxBytes = Math.min(MAX_RECORD_BYTES, EXPLANATIONS_HEAP_SHARE * oldSpaceLimit());
  const explanations = new ExplanationRecorder({ wallClock: () => Date.now(), maxBytes });
  const tracing = await startTracingIfEnabled(options);
  const { openWrites } = options;
  const others: ExchangeObserver[] = [];
  if (openWrites !== undefined) others.push(new OpenWriteObserver(openWrites, () => Date.now()));
  if (tracing !== undefined) others.push(tracing.observer);
  if (tracing !== undefined) resources.push(() => tracing.close());
  return { explanations, observer: others.length === 0 ? explanations : combineObservers([...others, explanations]) };
}

/** Loads the tracing modules only where tracing is enabled. */
async function startTracingIfEnabled(options: ExportOptions): Promise<Tracing | undefined> {
  const { kind, warning } = readExportSettings(process.env, TRACES);
  if (warning !== undefined) options.logger.warn(warning);
  if (kind === 'off') return undefined;
  const { startTracing } = await import('../../telemetry/tracing/start-tracing.ts');
  return startTracing(options);
}
