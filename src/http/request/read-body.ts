import type { Arrival } from './routed-request.ts';
import type { ArrivedWrite } from '../idempotency/keyed-request.ts';
import type { Kept } from './request-body.ts';
import { RequestBody } from './request-body.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { hasKeyInBody } from '../idempotency/idempotency-key.ts';
import type { Problem } from '../response/problem-details.ts';
import { LATE, overload } from '../response/problem-details.ts';

export interface BodyReader {
  /** @param replayable all of it is kept @param keyed the idempotency key stands in it */
  onRead(replayable: boolean, keyed: boolean): void;
  /** It is not taken. */
  onFault(problem: Problem): void;
}

/** The body of a request that has one, which its client is asked for where it waits for that. */
export function openBody(
  { request, response, route, snapshot, client }: Arrival,
  {
    replayMemory,
    clock,
    random,
    stalledReaders: stalled,
  }: Pick<ExchangeContext, 'replayMemory' | 'clock' | 'random' | 'stalledReaders'>,
  write: ArrivedWrite,
  reader: BodyReader,
): RequestBody {
  if (request.expectsContinue) response.writeContinue();
  request.expectsContinue = false;
  const onRead = (kept: Kept): void => {
    // Sent unread, a write would go with a key that nobody here has claimed.
    if (kept === 'no_memory' && hasKeyInBody(request, route)) reader.onFault(overload('replay_memory', random));
    else reader.onRead(kept === 'whole', kept === 'whole' && write.readKey(body));
  };
  const body = new RequestBody(request, {
    limit: route.replayLimit,
    memory: replayMemory,
    idle: snapshot.bodyIdle,
    rate: snapshot.bodyRate,
    clock,
    place: { upstream: route.target.name, holder: client.nest ?? client.hash, stalled, clock },
    onRead,
    onLate: (late) => reader.onFault(LATE[late]),
  });
  return body;
}
