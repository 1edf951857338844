/** Whom there is a preset for: `config/providers/NAME.yaml`. In alphabetical order. */
export const PROVIDERS = [
  'adyen',
  'braintree',
  'checkout.com',
  'coinbase',
  'github',
  'mollie',
  'paypal',
  'plaid',
  'razorpay',
  'shopify',
  'square',
  'stripe',
] as const;

export type Provider = (typeof PROVIDERS)[number];

export function isProvider(value: unknown): value is Provider {
  return PROVIDERS.some((provider) => provider === value);
}
