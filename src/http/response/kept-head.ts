import { REPLAYED_HEADER } from '../../core/idempotency/response-store.ts';
import { withoutHeader } from '../headers/raw-headers.ts';
import { addKeptRetryAfter } from '../headers/retry-after-header.ts';
import type { IdempotencySettings } from '../idempotency/idempotency-types.ts';
import type { KeptResponse } from '../idempotency/kept-response.ts';
import type { ResponseHead } from './response-head.ts';

/** Returns the head of a kept response as a repeat gets it: marked as replayed, and for a 429 or 503 with a Retry-After. */
export function keptHead(
  { status, reasonPhrase, headers, body, keptFor }: KeptResponse,
  {
    replayedHeader: marker = REPLAYED_HEADER,
    keepResponsesFor = 0,
  }: Pick<IdempotencySettings, 'replayedHeader' | 'keepResponsesFor'>,
): ResponseHead {
  const marked = [...withoutHeader([...headers], marker.toLowerCase()), marker, 'true'];
  const framed = [...marked, 'Content-Length', String(body.length)];
  return addKeptRetryAfter({ status, reasonPhrase, headers: framed, httpVersion: '1.1' }, keptFor ?? keepResponsesFor);
}
