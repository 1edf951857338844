import type { ExchangeContext } from '../request/exchange-context.ts';
import type { RoutedRequest } from '../request/routed-request.ts';
import { acceptMessage } from './accept-message.ts';
import { acceptWrite, isAsyncWrite, type WriteAcceptanceParts } from './accept-write.ts';
import type { Acceptance } from './acceptance.ts';

/** How a request is accepted that is stored and sent later; undefined if it is proxied while its client waits. */
export function acceptanceFor(
  routed: RoutedRequest,
  { digests }: Pick<ExchangeContext, 'digests'>,
  { store, wallClock }: Pick<WriteAcceptanceParts, 'store' | 'wallClock'>,
): Acceptance | undefined {
  const { delivery, asyncWrites } = routed.route;
  if (delivery !== undefined) return acceptMessage(routed, delivery);
  if (asyncWrites === undefined || !isAsyncWrite(routed)) return undefined;
  return acceptWrite({ routed, policy: asyncWrites, digests, store, wallClock });
}
