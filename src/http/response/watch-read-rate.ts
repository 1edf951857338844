import type { ReaderAbortReason } from '../../core/events/event-labels.ts';
import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { addressGroupOf } from '../request/client-identity.ts';
import type { HeldPlaces } from './client-stall.ts';
import type { ResponseReadRateOptions } from './response-read-rate.ts';
import { ResponseReadRate } from './response-read-rate.ts';

/**
 * Measures how fast a client reads its response, and announces when it is cut for that.
 * @param ticket of the exchange
 * @param onTooSlow must end the response
 */
export function watchReadRate(
  { clock, stalledClients: registry, listen }: Pick<ExchangeContext, 'clock' | 'stalledClients' | 'listen'>,
  { route, snapshot, client }: RoutedRequest,
  ticket: HeldPlaces,
  onTooSlow: ResponseReadRateOptions['onTooSlow'],
): ResponseReadRate {
  const upstream = route.target.name;
  const { bodyIdleTimeout: window, minReadRate: minRate } = snapshot;
  const onTooSlowReported = (why: ReaderAbortReason): void => {
    listen({ type: 'reader-cut', upstream, why });
    onTooSlow(why);
  };
  return new ResponseReadRate({
    upstream,
    addressGroup: addressGroupOf(client),
    ticket,
    clock,
    registry,
    window,
    minRate,
    onTooSlow: onTooSlowReported,
  });
}
