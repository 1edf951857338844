import type { DeliveryFilter } from '../../../core/delivery/delivery-store.ts';
import { STORED_STATES } from './delivery-script-parts.ts';

/** The arguments of the script that lists deliveries. */
export function encodeFilter({ states, route = '', order, after = '', limit }: DeliveryFilter): readonly string[] {
  const isWanted = (state: 'waiting' | 'sending'): string => ((states?.includes(state) ?? true) ? '1' : '');
  const ends = STORED_STATES.filter((state) => state !== 'open' && (states?.includes(state) ?? true));
  return [
    String(limit),
    after,
    order === 'newest' ? '1' : '',
    isWanted('waiting'),
    isWanted('sending'),
    ends.join(' '),
    route,
  ];
}
