import type { DeliveryEnd, DeliveryKind } from '../../core/delivery/delivery.ts';

/** The column `state`. The indexes name these numbers. */
export const STATE_CODES = {
  waiting: 0,
  /** An earlier delivery with the same order key is not over. */
  blocked: 1,
  delivered: 2,
  dead: 3,
  canceled: 4,
  unknown: 5,
} as const;

export type StateCode = (typeof STATE_CODES)[keyof typeof STATE_CODES];

/** Codes of states in which a delivery is not over. */
export const OPEN_CODES = [STATE_CODES.waiting, STATE_CODES.blocked] as const;

export const ALL_CODES: readonly StateCode[] = Object.values(STATE_CODES);

/** Undefined if a delivery with this code is not over. */
export function endOfCode(code: StateCode): DeliveryEnd | undefined {
  return ENDS[code];
}

const ENDS: Readonly<Record<StateCode, DeliveryEnd | undefined>> = {
  0: undefined,
  1: undefined,
  2: 'delivered',
  3: 'dead',
  4: 'canceled',
  5: 'unknown',
};

/** The column `kind`. */
export const KIND_CODES: Readonly<Record<DeliveryKind, number>> = { message: 0, write: 1 };

/**
 * Messages are in a table of their own, so that an attempt does not write them again. `until`: when a delivery that is not over is due,
 * else when it ended. `size`: the bytes of the sealed message and result. `number` is the order of acceptance. `waits_since`: when it was
 * accepted, or restarted.
 */
export const DELIVERY_TABLES = `
CREATE TABLE IF NOT EXISTS deliveries (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, route TEXT NOT NULL, upstream TEXT NOT NULL,
  accepted_at REAL NOT NULL, owner TEXT NOT NULL, sender TEXT NOT NULL, event_id TEXT, order_key TEXT, state INTEGER NOT NULL, until REAL NOT NULL, attempts INTEGER NOT NULL,
  started_at REAL, attempt_at REAL, attempt_took REAL, attempt_status INTEGER, attempt_reason TEXT, kept_until REAL,
  size INTEGER NOT NULL, waits_since REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS deliveries_by_state ON deliveries (route, state);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (route, until) WHERE state = 0;
CREATE INDEX IF NOT EXISTS deliveries_by_client ON deliveries (route, sender, owner, until) WHERE state = 0;
CREATE INDEX IF NOT EXISTS deliveries_in_order ON deliveries (route, order_key, state) WHERE order_key IS NOT NULL AND state < 2;
CREATE INDEX IF NOT EXISTS deliveries_by_age ON deliveries (waits_since) WHERE state < 2;
CREATE INDEX IF NOT EXISTS deliveries_over ON deliveries (state, kept_until) WHERE kept_until IS NOT NULL;
CREATE INDEX IF NOT EXISTS deliveries_over_of_sender ON deliveries (state, sender, kept_until) WHERE kept_until IS NOT NULL;
CREATE TABLE IF NOT EXISTS delivery_messages (number INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS delivery_results (number INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS delivery_events (
  event BLOB PRIMARY KEY, delivery TEXT NOT NULL, until REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS delivery_events_by_end ON delivery_events (until);
`;
