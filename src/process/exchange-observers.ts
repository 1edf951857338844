/** Who watches exchanges: explanations always, traces where they are asked for. */
import type { Opened } from './resource-stack.ts';
import { Stories, MOST_BYTES } from '../telemetry/explanations/explanation-recorder.ts';
import { readTraceSettings } from '../telemetry/tracing/trace-settings.ts';
import type { Tracing, TracingOptions } from '../telemetry/tracing/start-tracing.ts';
import type { Watcher } from '../core/exchange/exchange-observer.ts';
import { watchTogether } from '../core/exchange/exchange-observer.ts';
import { heapLimit } from '../http/overload/v8-heap.ts';

export interface Watching {
  readonly watcher: Watcher;
  readonly stories: Stories;
}

/** Of the heap, for stories of requests, where that is small. */
const STORIES_PART = 1 / 32;

/** @param opened gets what sends the last spans */
export async function startWatching(options: TracingOptions, opened: Pick<Opened, 'push'>): Promise<Watching> {
  const maxBytes = Math.min(MOST_BYTES, STORIES_PART * heapLimit());
  const stories = new Stories({ wallClock: () => Date.now(), maxBytes });
  const tracing = await traceExchanges(options);
  if (tracing === undefined) return { stories, watcher: stories };
  opened.push(() => tracing.close());
  return { stories, watcher: watchTogether([tracing.watcher, stories]) };
}

/** Most trace nothing: they need not read what that needs. */
async function traceExchanges(options: TracingOptions): Promise<Tracing | undefined> {
  const { kind, warning } = readTraceSettings(process.env);
  if (warning !== undefined) options.logger.warn(warning);
  if (kind === 'off') return undefined;
  const { startTracing } = await import('../telemetry/tracing/start-tracing.ts');
  return startTracing(options);
}
