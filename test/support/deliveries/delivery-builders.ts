/** Rows of the admin API for tests of texts about deliveries. */
import type { DeliveriesPage, DeliveryRow } from '../../../src/admin/page/api-types.ts';

/** The id of the n-th delivery. */
export function apiDeliveryId(n: number): string {
  return `01a22ac8-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
}

export const ACCEPTED_AT = '2026-11-30T04:48:53.000Z';
export const ENDED_AT = '2026-11-30T04:50:00.000Z';

/** A dead one. */
export function deliveryRow(n: number, given: Partial<DeliveryRow> = {}): DeliveryRow {
  return {
    ...{
      id: apiDeliveryId(n),
      kind: 'message',
      route: '/hooks',
      upstream: 'shop',
      state: 'dead',
      acceptedAt: ACCEPTED_AT,
    },
    ...{ nextAttemptAt: null, sendingSince: null, endedAt: ENDED_AT, attempts: 2 },
    lastAttempt: { at: '2026-11-30T04:49:59.985Z', tookSeconds: 0.012, status: 400, reason: 'status_400' },
    ...{ eventId: null, orderKey: null, client: '956feee998fe0eb7' },
    ...given,
  };
}

export function deliveriesPage(deliveries: readonly DeliveryRow[], next: string | null = null): DeliveriesPage {
  const counts = { waiting: 3, sending: 1, delivered: 20, dead: deliveries.length, canceled: 0, unknown: 0 };
  return { totals: { counts, bytes: 12_300, oldestAt: ACCEPTED_AT }, deliveries: [...deliveries], next };
}
