import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { makePathPattern, segmentsOf } from '../../../src/core/http-semantics/path-pattern.ts';
import { firstMatchingPattern } from '../../../src/http/request/match-path.ts';

interface Preset {
  readonly limits: readonly { readonly name: string; readonly match: { readonly path: readonly string[] } }[];
}
const text = readFileSync(new URL('../../../config/providers/stripe.yaml', import.meta.url), 'utf8');
const { limits } = parse(text) as Preset;
const patterns = (limits.find(({ name }) => name === 'endpoint')?.match.path ?? []).map(makePathPattern);

/** From Stripe's API reference. */
const ENDPOINTS = [
  ['/v1/charges', '/v1/charges'],
  ['/v1/charges/ch_1', '/v1/charges/*'],
  ['/v1/charges/search', '/v1/charges/search'],
  ['/v1/charges/ch_1/capture', '/v1/charges/*/capture'],
  ['/v1/payment_intents/pi_1/confirm', '/v1/payment_intents/*/confirm'],
  ['/v1/payment_intents/pi_1/increment_authorization', '/v1/payment_intents/*/increment_authorization'],
  ['/v1/customers/cus_1/sources/card_1', '/v1/customers/*/sources/*'],
  ['/v1/customers/cus_1/sources/ba_1/verify', '/v1/customers/*/sources/*/verify'],
  ['/v1/accounts/acct_1/persons/person_1', '/v1/accounts/*/persons/*'],
  ['/v1/accounts/acct_1/capabilities/transfers', '/v1/accounts/*/capabilities/*'],
  ['/v1/invoices/in_1/lines', '/v1/invoices/*/lines'],
  ['/v1/subscription_schedules/sub_sched_1/release', '/v1/subscription_schedules/*/release'],
  ['/v1/balance', '/v1/balance'],
  ['/v1/files/file_1', '/v1/files/*'],
  ['/v1/checkout/sessions', '/v1/checkout/sessions'],
  ['/v1/checkout/sessions/cs_1', '/v1/checkout/sessions/*'],
  ['/v1/checkout/sessions/cs_1/line_items', '/v1/checkout/sessions/*/line_items'],
  ['/v1/checkout/sessions/cs_1/expire', '/v1/checkout/sessions/*/expire'],
  ['/v1/billing_portal/configurations/bpc_1', '/v1/billing_portal/configurations/*'],
  ['/v1/billing/meters/mtr_1/event_summaries', '/v1/billing/meters/*/event_summaries'],
  ['/v1/issuing/cards/ic_1', '/v1/issuing/cards/*'],
  ['/v1/issuing/authorizations/iauth_1/approve', '/v1/issuing/authorizations/*/approve'],
  ['/v1/terminal/readers/tmr_1/process_payment_intent', '/v1/terminal/readers/*/process_payment_intent'],
  ['/v1/tax/transactions/tax_1/line_items', '/v1/tax/transactions/*/line_items'],
  ['/v1/treasury/financial_accounts/fa_1/features', '/v1/treasury/financial_accounts/*/features'],
  ['/v1/radar/value_list_items/rsli_1', '/v1/radar/value_list_items/*'],
  ['/v1/identity/verification_sessions/vs_1/cancel', '/v1/identity/verification_sessions/*/cancel'],
  ['/v1/reporting/report_runs/frr_1', '/v1/reporting/report_runs/*'],
  ['/v1/test_helpers/issuing/cards/ic_1/shipping/ship', '/v1/test_helpers/**'],
  ['/v1/test_helpers/test_clocks/clock_1/advance', '/v1/test_helpers/**'],
  ['/v2/core/events/evt_1', '/v2/core/events/*'],
  ['/v2/core/event_destinations/ed_1/disable', '/v2/core/event_destinations/*/disable'],
  ['/v2/billing/meter_events', '/v2/billing/meter_events'],
] as const;

describe('what the preset treats as an endpoint of Stripe', () => {
  test.each(ENDPOINTS)('%s is %s', (path, expected) => {
    const match = firstMatchingPattern(patterns, segmentsOf(path));
    expect(match?.pattern.substitute(match.captured)).toBe(expected);
  });
});
