import { describe, expect, test } from 'vitest';
import { describeQuota } from '../../../src/admin/page/text/quota-labels.js';
import type { QuotaStatus } from '../../../src/admin/api/upstream-schemas.ts';

function quotaOf(fields: Partial<QuotaStatus> = {}): QuotaStatus {
  const quota = { name: 'day', limit: 10_000, remaining: 5000, reserve: 1000, exhaustedAt: null };
  return { ...quota, resetAt: '2026-12-01T08:00:00.000Z', ...fields };
}

describe('the quota of a card', () => {
  test('is what the upstream reports if none is configured', () => {
    expect(describeQuota({ quotaLeft: null, quotas: [] })).toEqual({ text: 'not reported', severity: undefined });
    expect(describeQuota({ quotaLeft: 0.25, quotas: [] }).text).toBe('25 %');
  });

  test('is the configured quota with the smallest share left', () => {
    const month = quotaOf({ name: 'month', limit: 100_000, remaining: 20_000 });
    expect(describeQuota({ quotaLeft: 0.25, quotas: [quotaOf(), month] }).text).toMatch(
      /^20.000 of 100.000 \(month\)$/,
    );
  });

  test('is not that of a class of clients', () => {
    const ofClass = quotaOf({ name: 'class:partners/day', remaining: 0 });
    expect(describeQuota({ quotaLeft: null, quotas: [quotaOf(), ofClass] }).text).toMatch(/\(day\)$/);
    expect(describeQuota({ quotaLeft: 0.25, quotas: [ofClass] }).text).toBe('25 %');
  });

  test('is a warning if it will be used up before its reset, and critical once only its reserve is left', () => {
    const severityOf = (fields: Partial<QuotaStatus>) => {
      return describeQuota({ quotaLeft: null, quotas: [quotaOf(fields)] }).severity;
    };
    expect(severityOf({})).toBeUndefined();
    expect(severityOf({ exhaustedAt: '2026-12-01T02:00:00.000Z' })).toBe('warning');
    expect(severityOf({ remaining: 1000, exhaustedAt: '2026-11-30T12:00:00.000Z' })).toBe('critical');
  });
});
