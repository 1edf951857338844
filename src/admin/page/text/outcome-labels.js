/** Labels and severities of request outcomes. */

/** @import { ApiRequestOutcome } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/** @type {Readonly<Record<ApiRequestOutcome, string>>} */
export const OUTCOME_LABELS = {
  forwarded: 'forwarded',
  recovered: 'recovered',
  replayed: 'replayed',
  coalesced: 'coalesced',
  checked: 'check passed',
  accepted: 'accepted for delivery',
  preflight: 'preflight',
  refused: 'refused',
  queue_timeout: 'timed out in queue',
  upstream_error: 'upstream error',
  unknown: 'unknown',
  client_gone: 'client gone',
};

const OK_OUTCOMES = new Set(['forwarded', 'recovered', 'replayed', 'coalesced', 'checked', 'accepted', 'preflight']);
const CRITICAL_OUTCOMES = new Set(['unknown', 'upstream_error']);

/** @param {ApiRequestOutcome} outcome */
export function outcomeLabel(outcome) {
  return OUTCOME_LABELS[outcome] ?? outcome;
}

/**
 * @param {ApiRequestOutcome} outcome
 * @param {number} [status] the status that the client got
 * @returns {Severity}
 */
export function outcomeSeverity(outcome, status = 0) {
  if (CRITICAL_OUTCOMES.has(outcome)) return 'critical';
  if (OK_OUTCOMES.has(outcome)) return statusSeverity(status);
  return outcome === 'client_gone' ? 'muted' : 'warning';
}

/**
 * A response that was forwarded is not a success: an upstream's 500 is the client's error.
 * @param {number} status
 * @returns {Severity}
 */
function statusSeverity(status) {
  if (status >= 500) return 'critical';
  if (status === 429) return 'warning';
  return status >= 400 ? 'muted' : 'ok';
}
