/** A payment provider that charges once for each key, and repeats its response to a key that it knows. */
import type { ServerResponse } from 'node:http';
import { type Hit, startHttpUpstream } from '../upstreams/http-upstream.ts';

/** What it does with a request whose key it does not know. */
export type LedgerMode =
  | 'charge'
  /** It refuses with a 503, and charges nothing. */
  | 'unavailable'
  /** It charges, and the connection breaks before its response. */
  | 'break'
  /** It charges, and does not respond before `respond`. */
  | 'hold';

export async function startLedger() {
  const charges = new Map<string, number>();
  const held: ServerResponse[] = [];
  const state: { mode: LedgerMode } = { mode: 'charge' };
  const respond = (response: ServerResponse, key: string, isReplayed: boolean): void => {
    const replayed = isReplayed ? { 'Idempotent-Replayed': 'true' } : {};
    response.writeHead(201, { 'Content-Type': 'application/json', 'X-Charge': key, 'Set-Cookie': 'a=b', ...replayed });
    response.end(JSON.stringify({ charge: key }));
  };
  const upstream = await startHttpUpstream((_n, response, hit) => {
    const key = headerOf(hit, 'idempotency-key') ?? 'none';
    const { mode } = state;
    if (mode === 'unavailable') return void response.writeHead(503).end('down');
    const before = charges.get(key) ?? 0;
    if (before === 0) charges.set(key, 1);
    if (before > 0) return respond(response, key, true);
    if (mode === 'break') return void response.destroy();
    if (mode === 'hold') return void held.push(response);
    respond(response, key, false);
  });
  return { url: upstream.url, hits: upstream.hits, charges, held, state };
}

export function headerOf({ headers }: Pick<Hit, 'headers'>, name: string): string | undefined {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
  return at < 0 ? undefined : headers[at + 1];
}
