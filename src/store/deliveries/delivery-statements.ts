/** The statements on deliveries, their messages and their results. */

/** Each is O(log n), and O(limit) where it has one. */
export const DELIVERY_QUERIES = {
  find: 'SELECT * FROM deliveries WHERE id = ?',
  get: 'SELECT * FROM deliveries WHERE number = ?',
  message: 'SELECT sealed FROM delivery_messages WHERE number = ?',
  result: 'SELECT sealed FROM delivery_results WHERE number = ?',
  hasOpen: 'SELECT 1 FROM deliveries WHERE state < 2 AND route = ? AND order_key = ? LIMIT 1',
  unblock: `UPDATE deliveries SET state = 0, until = max(until, ?) WHERE number = (SELECT number FROM deliveries
    WHERE state = 1 AND state < 2 AND route = ? AND order_key = ? ORDER BY number LIMIT 1) RETURNING number, until, sender, owner`,
  list: 'SELECT number FROM deliveries WHERE route = ? AND state = ? AND number > ? ORDER BY number LIMIT ?',
  listNewest: 'SELECT number FROM deliveries WHERE route = ? AND state = ? AND number < ? ORDER BY number DESC LIMIT ?',
  following: 'SELECT number FROM deliveries WHERE id > ? ORDER BY id LIMIT 1',
  over: 'SELECT number FROM deliveries WHERE state = ? AND kept_until <= ? ORDER BY kept_until LIMIT ?',
  firstOverOf: `SELECT number FROM deliveries WHERE state = ? AND sender = ? AND kept_until IS NOT NULL
    ORDER BY kept_until LIMIT 1`,
  openSince:
    'SELECT number, waits_since FROM deliveries WHERE state < 2 AND waits_since <= ? ORDER BY waits_since LIMIT ?',
  nextRemoval: 'SELECT min(kept_until) AS until FROM deliveries WHERE state = ? AND kept_until IS NOT NULL',
  nextRoute: 'SELECT min(route) AS route FROM deliveries WHERE route > ?',
} as const;

const CHANGES = {
  insert: `INSERT INTO deliveries
    (id, kind, route, upstream, accepted_at, owner, sender, event_id, order_key, state, until, attempts, size, waits_since)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT (id) DO NOTHING`,
  insertMessage: 'INSERT INTO delivery_messages VALUES (?, ?)',
  insertResult: 'INSERT INTO delivery_results VALUES (?, ?)',
  resize: 'UPDATE deliveries SET size = size + ? WHERE number = ?',
  attempt: `UPDATE deliveries SET attempts = attempts + ?1, started_at = iif(?1 = 1, coalesce(started_at, ?2), started_at),
    attempt_at = ?2, attempt_took = ?3, attempt_status = ?4, attempt_reason = ?5 WHERE number = ?6`,
  postpone: 'UPDATE deliveries SET until = ? WHERE number = ?',
  end: 'UPDATE deliveries SET state = ?, until = ?, kept_until = ? WHERE number = ?',
  restart: `UPDATE deliveries SET state = ?, until = ?, waits_since = ?, started_at = NULL, attempts = 0, kept_until = NULL
    WHERE number = ?`,
  remove: 'DELETE FROM deliveries WHERE number = ? RETURNING state, size, sender',
  removeMessage: 'DELETE FROM delivery_messages WHERE number = ?',
  removeResult: 'DELETE FROM delivery_results WHERE number = ? RETURNING length(sealed) AS size',
} as const;

export type StatementName = keyof typeof STATEMENTS;

export const STATEMENTS = { ...DELIVERY_QUERIES, ...CHANGES };
