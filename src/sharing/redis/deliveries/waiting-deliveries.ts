import type { Delivery, DeliveryEnd } from '../../../core/delivery/delivery.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { RedisResult } from '../redis-requests.ts';
import type { DeliveryCommands } from './delivery-commands.ts';
import { encodeAttempt } from './delivery-fields.ts';
import type { RedisDeliveryStoreParts } from './redis-delivery-store-parts.ts';

export interface WaitingDeliveriesParts
  extends Pick<RedisDeliveryStoreParts, 'wallClock' | 'keepFor' | 'onDue' | 'onExpired'> {
  readonly commands: DeliveryCommands;
}

/** Ends deliveries that no replica sends. */
export class WaitingDeliveries {
  readonly #parts: WaitingDeliveriesParts;

  constructor(parts: WaitingDeliveriesParts) {
    this.#parts = parts;
  }

  /**
   * The response is `stored`, or `refused` if it has ended or is being sent.
   * @param attempt encoded; empty: none
   * @param since it has to wait since this time at least; empty: any
   */
  end(
    { id, route }: Pick<Delivery, 'id' | 'route'>,
    end: DeliveryEnd,
    now: Millis,
    { attempt = '', since = '' }: { readonly attempt?: string; readonly since?: string } = {},
  ): Promise<RedisResult<unknown>> {
    const { commands, keepFor } = this.#parts;
    const args = [id, end, String(now), String(now + keepFor(route, end)), attempt, since];
    const call = { script: 'tidegateEndDelivery', keys: [commands.keyOf(id)], args } as const;
    return new Promise((resolve) => commands.run(call, resolve));
  }

  /** Ends those that have waited too long. Another replica may have ended some. @param since they wait since this time at least */
  async expire(deliveries: readonly Delivery[], since: Millis): Promise<void> {
    const { wallClock, onExpired, onDue } = this.#parts;
    const now = wallClock();
    const attempt = encodeAttempt({ at: now, took: 0, status: undefined, reason: 'expired' });
    const options = { attempt, since: String(since) };
    const results = await Promise.all(deliveries.map((each) => this.end(each, endWithoutAttempt(each), now, options)));
    const expired = deliveries.filter((_, i) => isStored(results[i]));
    if (expired.length === 0) return;
    onExpired?.(expired);
    onDue(undefined); // the next ones with their order keys
  }
}

/** A write may have been sent before. */
export function endWithoutAttempt({ kind }: Delivery): DeliveryEnd {
  return kind === 'write' ? 'unknown' : 'dead';
}

function isStored(result: RedisResult<unknown> | undefined): boolean {
  return result?.kind === 'response' && result.response === 'stored';
}
