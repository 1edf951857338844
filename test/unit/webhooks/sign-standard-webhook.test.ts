import { describe, expect, test } from 'vitest';
import { signStandardWebhook, withoutStandardHeaders } from '../../../src/http/webhooks/sign-standard-webhook.ts';
import { standardWebhookKey, standardWebhooksScheme } from '../../../src/http/webhooks/standard-webhooks-signature.ts';
import { verifySignature } from '../../../src/http/webhooks/verify-signature.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
const AT = 1_614_265_330_999;
const BODY = Buffer.from('{"test": 2432232314}');
const webhook = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: BODY, at: AT };

describe('signStandardWebhook', () => {
  test('makes the signature that the libraries of Standard Webhooks make', () => {
    // The example of https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/javascript/src/index.test.ts
    expect(signStandardWebhook([standardWebhookKey(SECRET)], webhook)).toEqual([
      ...['webhook-id', 'msg_p5jXN8AQM9LWM0D4loKWxJek', 'webhook-timestamp', '1614265330'],
      ...['webhook-signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
    ]);
  });

  test('makes a signature by each key, so that a receiver that knows either accepts it', () => {
    const headers = signStandardWebhook([SECRET, OTHER].map(standardWebhookKey), webhook);
    expect(headers.at(-1)).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
    for (const secret of [SECRET, OTHER]) {
      const scheme = standardWebhooksScheme([secret], 1000);
      expect(verifySignature(scheme, headers, BODY, AT)).toEqual({ kind: 'valid' });
      expect(verifySignature(scheme, headers, Buffer.from('{}'), AT)).toMatchObject({ reason: 'mismatch' });
    }
  });
});

test('withoutStandardHeaders removes what a receiver could read as a part of a signature', () => {
  expect(
    withoutStandardHeaders([
      ...['Webhook-Id', 'a', 'X-Webhook-Id', 'b', 'webhook_signature', 'c', 'WEBHOOK-TIMESTAMP', 'd'],
      ...['svix-id', 'e', 'Webhook-Identity', 'f', 'Stripe-Signature', 'webhook-id'],
    ]),
  ).toEqual(['X-Webhook-Id', 'b', 'Webhook-Identity', 'f', 'Stripe-Signature', 'webhook-id']);
});
