/** W3C Trace Context: the headers that relate requests to a trace. */
import type { HttpServerRequest } from '../server/server-request.ts';

/** Version, trace id, parent id, flags; later versions may have more (§3.2.4). No id is all zeros, and no version is ff. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f]{2}(?:$|-)/;

/** Undefined if there is none, or more than one. */
export function traceparentOf({ headers }: Pick<HttpServerRequest, 'headers'>): string | undefined {
  const { traceparent } = headers;
  return typeof traceparent === 'string' ? traceparent : undefined;
}

/** The trace of a client, and its span there. */
export interface ClientTrace {
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

const NO_TRACE: ClientTrace = { traceId: undefined, spanId: undefined };

export function clientTraceOf(request: Pick<HttpServerRequest, 'headers'>): ClientTrace {
  const traceparent = traceparentOf(request);
  if (traceparent === undefined) return NO_TRACE;
  const match = TRACEPARENT.exec(traceparent);
  return match === null ? NO_TRACE : { traceId: match[1], spanId: match[2] };
}

/** Replaces the trace headers of a request. @param outgoing names and values in turn */
export function replaceTraceHeaders(headers: readonly string[], outgoing: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (!isTraceHeader(name)) out.push(name, headers[i + 1] ?? '');
  }
  out.push(...outgoing);
  return out;
}

function isTraceHeader(name: string): boolean {
  if (name.length !== 10 && name.length !== 11) return false;
  const lower = name.toLowerCase();
  return lower === 'traceparent' || lower === 'tracestate';
}
