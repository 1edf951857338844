import { githubScheme, hmacScheme } from '../../http/webhooks/hmac-signature.ts';
import type { SignatureScheme } from '../../http/webhooks/signature-types.ts';
import { standardWebhooksScheme } from '../../http/webhooks/standard-webhooks-signature.ts';
import { stripeScheme } from '../../http/webhooks/stripe-signature.ts';
import type { VerifyConfig } from '../schema/config-schema.ts';

/** Undefined if a route does not verify who sends its requests. */
export function compileVerify(verify: VerifyConfig | undefined): SignatureScheme | undefined {
  switch (verify?.scheme) {
    case undefined:
      return undefined;
    case 'stripe':
      return stripeScheme(verify.secrets, verify.tolerance);
    case 'standard-webhooks':
      return standardWebhooksScheme(verify.secrets, verify.tolerance);
    case 'github':
      return githubScheme(verify.secrets);
    case 'hmac': {
      const { timestampHeader: header, timestampUnit: unit, tolerance, prefix = '' } = verify;
      return hmacScheme({
        ...verify,
        prefix,
        timestamp: header === undefined ? undefined : { header, unit, tolerance },
      });
    }
  }
}
