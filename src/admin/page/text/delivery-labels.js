/** Wording of stored deliveries. */
import { formatClock, formatCount, formatMoment, formatTimeSpan, secondsUntil } from './labels.js';

/** @import { DeliveryRow, StoredDeliveries } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/** @type {Readonly<Record<DeliveryRow['state'], string>>} */
export const DELIVERY_STATE_MEANINGS = {
  waiting: 'It waits for its next attempt.',
  sending: 'An attempt is in progress.',
  delivered: 'The upstream has acknowledged it, or has decided about the write.',
  dead: 'No more attempts are made, unless it is retried.',
  canceled: 'An operator has canceled it.',
  unknown: 'The write may have taken effect, and no more attempts are made. Look it up at the upstream.',
};

/**
 * @param {DeliveryRow} delivery
 * @returns {Severity}
 */
export function deliverySeverity({ state, attempts }) {
  if (state === 'dead' || state === 'unknown') return 'critical';
  if (state === 'delivered') return 'ok';
  return state === 'canceled' || attempts === 0 ? 'muted' : 'warning';
}

/** @param {number} attempts */
export function formatAttempts(attempts) {
  return attempts === 1 ? '1 attempt' : `${formatCount(attempts)} attempts`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** @param {number} bytes */
export function formatBytes(bytes) {
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit + 1 < UNITS.length; unit += 1) value /= 1024;
  return `${unit === 0 || value >= 9.95 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/**
 * @param {StoredDeliveries} stored
 * @param {number} now the server's clock, in milliseconds since 1970
 * @returns {readonly (readonly [name: string, value: string])[]}
 */
export function describeStored({ counts, bytes, oldestAt }, now) {
  return [
    ...Object.entries(counts).map(([state, count]) => /** @type {const} */ ([state, formatCount(count)])),
    ['messages', formatBytes(bytes)],
    ['oldest waits for', oldestAt === null ? '–' : formatTimeSpan((now - Date.parse(oldestAt)) / 1000)],
  ];
}

/**
 * When the next attempt begins, the present one began, or the delivery ended.
 * @param {DeliveryRow} delivery
 * @param {number} now
 * @returns {{readonly time: string | null, readonly text: string}}
 */
export function formatNextOrEnd({ state, nextAttemptAt, sendingSince, endedAt }, now) {
  if (state === 'waiting') {
    const left = secondsUntil(nextAttemptAt, now);
    return { time: nextAttemptAt, text: left === undefined ? 'due' : `in ${formatTimeSpan(left)}` };
  }
  if (sendingSince !== null) return { time: sendingSince, text: `since ${formatClock(sendingSince)}` };
  return { time: endedAt, text: endedAt === null ? '–' : formatMoment(endedAt, now) };
}

/**
 * The status of the last attempt, and the reason why it did not acknowledge the delivery.
 * @param {DeliveryRow} delivery
 */
export function formatLastResult({ lastAttempt }) {
  if (lastAttempt === null) return '–';
  const { status, reason } = lastAttempt;
  if (status === null) return reason ?? 'no response';
  return reason === null || reason === `status_${status}` ? String(status) : `${status} ${reason}`;
}

/**
 * The state of a delivery in one sentence.
 * @param {DeliveryRow} delivery
 * @param {number} now
 */
export function describeDelivery({ state, acceptedAt, nextAttemptAt, sendingSince, endedAt, attempts, orderKey }, now) {
  switch (state) {
    case 'waiting': {
      const left = secondsUntil(nextAttemptAt, now);
      if (left !== undefined) return `Attempt ${attempts + 1} begins in ${formatTimeSpan(left)}.`;
      const order = orderKey === null ? '' : ' Earlier deliveries with its order key are sent first.';
      return `Attempt ${attempts + 1} is due.${order}`;
    }
    case 'sending':
      return `Attempt ${attempts + 1} is in progress${sendingSince === null ? '' : ` since ${formatClock(sendingSince)}`}.`;
    case 'delivered': {
      const took = endedAt === null ? '' : ` ${formatTimeSpan((Date.parse(endedAt) - Date.parse(acceptedAt)) / 1000)}`;
      return `Delivered${took} after it was accepted, with ${formatAttempts(attempts)}.`;
    }
    case 'dead':
      return `Dead after ${formatAttempts(attempts)}: no more are made, unless it is retried.`;
    case 'canceled':
      return `Canceled by an operator after ${formatAttempts(attempts)}.`;
    case 'unknown':
      return `Unknown after ${formatAttempts(attempts)}: it may have taken effect. Look it up at the upstream.`;
  }
}
