import type { LimitCost } from '../../core/cost/request-costs.ts';
import { toSeconds } from '../format-values.ts';
import type { ExplanationStep } from './build-explanation.ts';
import type { ExplanationRecord } from './explanation-record.ts';

/** The costs of the last attempt; empty if it has none. */
export function formatCosts({ last, record }: ExplanationRecord): ExplanationStep[] {
  const costs = record.attempts === 0 ? [] : (last?.costs ?? []);
  if (costs.length === 0) return [];
  const text = costs.map(formatCost).join('; ');
  const fields = costs.map(({ rule, charged, actual }) => ({ limit: rule.limit, charged, actual: actual ?? null }));
  return [{ at: toSeconds(record.took), what: 'cost', text, costs: fields }];
}

function formatCost({ rule: { limit }, charged, actual }: Readonly<LimitCost>): string {
  const where = limit === '' ? 'at the limit of the upstream' : `at ${limit}`;
  const charge = `charged ${formatUnits(charged)} ${where}`;
  return actual === undefined ? charge : `${charge}, cost ${formatUnits(actual)}`;
}

function formatUnits(units: number): string {
  const rounded = Number(units.toPrecision(3));
  return rounded === 1 ? '1 unit' : `${rounded} units`;
}
