import type { Arrival } from './arrival.ts';
import type { BodyOptions } from './body.ts';
import { RequestBody } from './body.ts';
import type { ExchangeContext } from './context.ts';

/** The body of a request that has one, which its client is asked for where it waits for that. */
export function openBody(
  { request, response, route, snapshot }: Arrival,
  { replayMemory, clock }: Pick<ExchangeContext, 'replayMemory' | 'clock'>,
  { onRead, onLate }: Pick<BodyOptions, 'onRead' | 'onLate'>,
): RequestBody {
  if (request.expectsContinue) response.writeContinue();
  request.expectsContinue = false;
  return new RequestBody(request, {
    limit: route.replayLimit,
    memory: replayMemory,
    idle: snapshot.bodyIdle,
    rate: snapshot.bodyRate,
    clock,
    onRead,
    onLate,
  });
}
