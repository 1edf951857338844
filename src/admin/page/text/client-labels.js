/** Labels and severities of client states. */
import { formatTimeSpan, secondsUntil } from './labels.js';

/** @import { ApiClientState, ClientRow } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/**
 * @param {ApiClientState} state
 * @returns {Severity}
 */
export function clientSeverity(state) {
  if (state === 'held') return 'critical';
  return state === 'normal' ? 'ok' : 'warning';
}

/**
 * The state, and how long it lasts where that is known.
 * @param {ClientRow} client
 * @param {number} now the server's clock, in milliseconds since 1970
 */
export function formatClientState({ state, heldUntil, calmAt }, now) {
  const left = secondsUntil(state === 'held' ? heldUntil : state === 'normal' ? null : calmAt, now);
  return left === undefined ? state : `${state}, ${formatTimeSpan(left)}`;
}
