/** Providers with a preset, `config/providers/NAME.yaml`, in alphabetical order. */
export const PROVIDERS = [
  'adyen',
  'anthropic',
  'braintree',
  'checkout.com',
  'coinbase',
  'github',
  'mollie',
  'openai',
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
