/** W3C Trace Context: what requests say of the trace that they are a part of. */
import type { Inbound } from '../server/server-request.ts';

/** Version, trace, parent, flags; later versions may have more (§3.2.4). Neither id is all zeros, and no version is ff. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:$|-)/;

/** Where it is told twice, of two traces, it is of neither. */
export function traceparentOf({ headers }: Pick<Inbound, 'headers'>): string | undefined {
  const { traceparent } = headers;
  return typeof traceparent === 'string' ? traceparent : undefined;
}

/** The id of the trace in 32 hex digits; undefined where there is none. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceparent === undefined ? undefined : TRACEPARENT.exec(traceparent)?.[1];
}

/** Headers of a request with our word on its trace in place of its client's. @param outgoing names and values in turn */
export function withTrace(headers: readonly string[], outgoing: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (!isOfTrace(name)) out.push(name, headers[i + 1] ?? '');
  }
  out.push(...outgoing);
  return out;
}

function isOfTrace(name: string): boolean {
  if (name.length !== 10 && name.length !== 11) return false;
  const lower = name.toLowerCase();
  return lower === 'traceparent' || lower === 'tracestate';
}
