/** Labels and severities of request outcomes. */

/** @import { ApiRequestOutcome } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/** @type {Readonly<Record<ApiRequestOutcome, string>>} */
export const OUTCOME_LABELS = {
  forwarded: 'forwarded',
  recovered: 'recovered',
  checked: 'check passed',
  preflight: 'preflight',
  refused: 'refused',
  queue_timeout: 'queue timeout',
  upstream_error: 'upstream error',
  unknown: 'unknown',
  client_gone: 'client gone',
};

const OK_OUTCOMES = new Set(['forwarded', 'recovered', 'checked', 'preflight']);
const CRITICAL_OUTCOMES = new Set(['unknown', 'upstream_error']);

/** @param {ApiRequestOutcome} outcome */
export function outcomeLabel(outcome) {
  return OUTCOME_LABELS[outcome] ?? outcome;
}

/**
 * @param {ApiRequestOutcome} outcome
 * @returns {Severity | 'muted'}
 */
export function outcomeSeverity(outcome) {
  if (OK_OUTCOMES.has(outcome)) return 'ok';
  if (CRITICAL_OUTCOMES.has(outcome)) return 'critical';
  return outcome === 'client_gone' ? 'muted' : 'warning';
}
