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

/** The domains of the providers' APIs, sandboxes included. All of them serve https only. */
const DOMAINS: Readonly<Record<Provider, readonly string[]>> = {
  adyen: ['adyen.com', 'adyenpayments.com'],
  anthropic: ['anthropic.com'],
  braintree: ['braintreegateway.com', 'braintree-api.com'],
  'checkout.com': ['checkout.com'],
  coinbase: ['coinbase.com'],
  github: ['github.com'],
  mollie: ['mollie.com'],
  openai: ['openai.com'],
  paypal: ['paypal.com'],
  plaid: ['plaid.com'],
  razorpay: ['razorpay.com'],
  shopify: ['myshopify.com', 'shopify.com'],
  square: ['squareup.com', 'squareupsandbox.com'],
  stripe: ['stripe.com'],
};

/** The provider whose API has this host name; undefined for any other. */
export function providerOfHost(host: string): Provider | undefined {
  return PROVIDERS.find((provider) =>
    DOMAINS[provider].some((domain) => host === domain || host.endsWith(`.${domain}`)),
  );
}

export function isProvider(value: unknown): value is Provider {
  return PROVIDERS.some((provider) => provider === value);
}
