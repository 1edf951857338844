/** Ends the requests in flight when the process shuts down. */
import type { Logger } from 'pino';
import type { Clock, Millis } from '../core/scalars.ts';
import type { Proxy } from '../http/request/proxy.ts';

const POLL_INTERVAL: Millis = 20;
/** Time for our own responses to requests that the end of a drain aborts. */
const FINAL_RESPONSES_TIMEOUT: Millis = 300;

export interface DrainParts {
  /** Before anything else: see `drain.delay`. */
  readonly delay: Millis;
  readonly logger: Logger;
  readonly timeout: Millis;
  readonly clock: Clock;
  /** Closes the connections to them. */
  readonly upstreams: { readonly close: () => Promise<void> };
}

/** Logs what the process waits for before it ends, and waits for the delay. */
async function waitForDelay({ inFlight }: Proxy, { delay, timeout, logger }: DrainParts): Promise<void> {
  if (delay > 0) logger.info({ delayMs: delay }, 'drain: serves until load balancers have noticed (drain.delay)');
  if (inFlight > 0) {
    logger.info({ inFlight, timeoutMs: timeout }, 'drain: waits for requests in flight (drain.timeout)');
  }
  await sleep(delay);
}

/** After the delay: accepts no more requests, and waits for those in flight. Aborts those that are left after `timeout`. */
export async function drainProxy(proxy: Proxy, parts: DrainParts): Promise<void> {
  await waitForDelay(proxy, parts);
  const { timeout, clock, logger, upstreams } = parts;
  const deadline = clock.now() + timeout;
  proxy.drain(deadline);
  await waitForIdle(proxy, timeout, clock);
  const remaining = proxy.inFlight;
  if (remaining === 0) return;
  // The clients of those get a response about their state before their connections close.
  proxy.expireDrain();
  await upstreams.close();
  await waitForIdle(proxy, FINAL_RESPONSES_TIMEOUT, clock);
  logger.warn({ cut: remaining }, 'drain timeout: requests in flight are aborted');
}

async function waitForIdle(proxy: Proxy, timeout: Millis, clock: Clock): Promise<void> {
  const deadline = clock.now() + timeout;
  while (proxy.inFlight > 0 && clock.now() < deadline) await sleep(POLL_INTERVAL);
}

export function sleep(ms: Millis): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
