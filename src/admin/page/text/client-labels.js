/** Labels and severities of client states. */
import { formatPercent, formatRateLabel, formatTimeSpan, secondsUntil } from './labels.js';

/** @import { ApiClientState, ClientRow, UpstreamStatus } from '../api-types.ts' */
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
 * The name of the configuration; else the hash of the client.
 * @param {Pick<ClientRow, 'key' | 'name'>} client
 */
export function formatClient({ key, name }) {
  return name ?? key;
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

/**
 * Whom most refusals concern, and why: `, 97 % to client batch (sends 73/s, its share is 5.4/s)`.
 * @param {UpstreamStatus} upstream
 * @param {number} now the server's clock, in milliseconds since 1970
 */
export function formatMostRefused({ mostRefused }, now) {
  if (mostRefused === null) return '';
  const { shareOfRefusals, demandPerSecond, sharePerSecond, heldUntil } = mostRefused;
  const part = shareOfRefusals === 1 ? 'all' : formatPercent(shareOfRefusals);
  const held = secondsUntil(heldUntil, now);
  const demand = `sends ${formatRateLabel(demandPerSecond)}`;
  const share = sharePerSecond === null ? '' : `, its share is ${formatRateLabel(sharePerSecond)}`;
  const why = held === undefined ? `${demand}${share}` : `the upstream holds it for another ${formatTimeSpan(held)}`;
  return `, ${part} to client ${formatClient(mostRefused)} (${why})`;
}
