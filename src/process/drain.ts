/** How requests in flight come to their end when the process goes away. */
import type { Clock, Millis } from '../core/exchange/attempt-outcome.ts';
import type { Proxy } from '../http/request/proxy.ts';

const POLL: Millis = 20;
/** For answers of our own to those whom the end of a drain cuts. */
const LAST_WORDS: Millis = 300;

export interface DrainParts {
  readonly timeout: Millis;
  readonly clock: Clock;
  /** Ends what goes to upstreams. */
  readonly cut: () => Promise<void>;
}

/** Takes no more, and waits for what is in flight. Returns how many requests had to be cut. */
export async function drainProxy(proxy: Proxy, { timeout, clock, cut }: DrainParts): Promise<number> {
  const by = clock.now() + timeout;
  proxy.drain(by);
  await settleWithin(proxy, timeout, clock);
  const left = proxy.inFlight;
  if (left === 0) return 0;
  // Those are told, with what is known of them, before their connections end.
  proxy.expire();
  await cut();
  await settleWithin(proxy, LAST_WORDS, clock);
  return left;
}

async function settleWithin(proxy: Proxy, time: Millis, clock: Clock): Promise<void> {
  const by = clock.now() + time;
  while (proxy.inFlight > 0 && clock.now() < by) await pause(POLL);
}

export function pause(ms: Millis): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
