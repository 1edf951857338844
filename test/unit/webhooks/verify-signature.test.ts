import { createHmac } from 'node:crypto';
import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { githubScheme, hmacScheme, type HmacSchemeOptions } from '../../../src/http/webhooks/hmac-signature.ts';
import type { SignatureScheme } from '../../../src/http/webhooks/signature-types.ts';
import { standardWebhooksScheme } from '../../../src/http/webhooks/standard-webhooks-signature.ts';
import { stripeScheme } from '../../../src/http/webhooks/stripe-signature.ts';
import { verifySignature } from '../../../src/http/webhooks/verify-signature.ts';

const MINUTE = 60_000;
const TOLERANCE = 5 * MINUTE;
const AT = 1_614_265_330;
const NOW = AT * 1000;

function verify(scheme: SignatureScheme, rawHeaders: readonly string[], body: string, now = NOW): string {
  const result = verifySignature(scheme, rawHeaders, Buffer.from(body), now);
  return result.kind === 'valid' ? 'valid' : result.reason;
}

function hmac(secret: string | Buffer, text: string): Buffer {
  return createHmac('sha256', secret).update(text).digest();
}

describe('stripe', () => {
  const SECRET = 'whsec_test_secret';
  const BODY = '{"id": "evt_1", "object": "event"}';
  const { webhooks } = new Stripe('sk_test_1');
  const scheme = stripeScheme([SECRET], TOLERANCE);
  const header = webhooks.generateTestHeaderString({ payload: BODY, secret: SECRET, timestamp: AT });
  const good = hmac(SECRET, `${AT}.${BODY}`).toString('hex');
  const check = (value: string, body = BODY, now = NOW): string =>
    verify(scheme, ['Stripe-Signature', value], body, now);

  test("accepts the header of Stripe's own library", () => {
    expect(header).toBe(`t=${AT},v1=${good}`);
    expect(check(header)).toBe('valid');
    expect(check(header, `${BODY} `)).toBe('mismatch');
  });

  test('uses the secret as it is, with its prefix', () => {
    const bare = hmac(SECRET.slice('whsec_'.length), `${AT}.${BODY}`).toString('hex');
    expect(check(`t=${AT},v1=${bare}`)).toBe('mismatch');
  });

  test('accepts any signature of a header by any secret', () => {
    const wrong = 'a'.repeat(64);
    expect(check(`t=${AT},v1=${wrong},v1=${good}`)).toBe('valid');
    expect(check(`t=${AT},v0=${wrong},v1=${good},v2=x`)).toBe('valid');
    const rotating = stripeScheme(['other', SECRET], TOLERANCE);
    expect(verify(rotating, ['stripe-signature', header], BODY)).toBe('valid');
    expect(verify(stripeScheme(['other', 'third'], TOLERANCE), ['stripe-signature', header], BODY)).toBe('mismatch');
  });

  test('refuses a timestamp outside the tolerance, in both directions', () => {
    expect(check(header, BODY, NOW + TOLERANCE + 999)).toBe('valid');
    expect(check(header, BODY, NOW + TOLERANCE + 1000)).toBe('too_old');
    expect(check(header, BODY, NOW - TOLERANCE)).toBe('valid');
    expect(check(header, BODY, NOW - TOLERANCE - 1)).toBe('too_new');
  });

  test.each([
    ['no timestamp', `v1=${good}`],
    ['two timestamps', `t=${AT},t=${AT},v1=${good}`],
    ['an exponent', `t=1e3,v1=${good}`],
    ['a space', `t= ${AT},v1=${good}`],
    ['a sign', `t=+${AT},v1=${good}`],
    ['a fraction', `t=${AT}.0,v1=${good}`],
    ['a hexadecimal number', `t=0x10,v1=${good}`],
    ['a leading zero', `t=0${AT},v1=${good}`],
    ['a huge timestamp', `t=${'9'.repeat(400)},v1=${good}`],
    ['an empty timestamp', `t=,v1=${good}`],
    ['no signature', `t=${AT}`],
    ['only a signature of another version', `t=${AT},v0=${good}`],
    ['a short signature', `t=${AT},v1=${good.slice(2)}`],
    ['a long signature', `t=${AT},v1=${good}00`],
    ['a signature that is not hexadecimal', `t=${AT},v1=${good.slice(0, -1)}g`],
    ['an empty header', ''],
    ['17 signatures', `t=${AT}${`,v1=${good}`.repeat(17)}`],
  ])('calls %s malformed', (_, value) => {
    expect(check(value)).toBe('malformed');
  });

  test('accepts 16 signatures, of which the last one matches', () => {
    expect(check(`t=${AT}${`,v1=${'b'.repeat(64)}`.repeat(15)},v1=${good}`)).toBe('valid');
  });

  test('distinguishes an absent header from one that the upstream may read differently', () => {
    expect(verify(scheme, ['Host', 'a'], BODY)).toBe('missing');
    expect(verify(scheme, ['Stripe-Signature', header, 'stripe-signature', header], BODY)).toBe('malformed');
    expect(verify(scheme, ['Stripe-Signature', header, 'Stripe_Signature', header], BODY)).toBe('malformed');
    expect(verify(scheme, ['Stripe_Signature', header], BODY)).toBe('malformed');
    expect(verify(scheme, ['Stripe-Signature', header, 'Connection', 'stripe-signature'], BODY)).toBe('malformed');
  });
});

describe('standard-webhooks', () => {
  // The vector of the reference libraries.
  const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
  const BODY = '{"test": 2432232314}';
  const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const scheme = standardWebhooksScheme([SECRET], TOLERANCE);
  const headersOf = (prefix: string, signature = SIGNATURE, id = ID, timestamp = String(AT)): string[] => [
    `${prefix}-id`,
    id,
    `${prefix}-timestamp`,
    timestamp,
    `${prefix}-signature`,
    signature,
  ];

  test('accepts the vector of the reference libraries, under both sets of names', () => {
    expect(verify(scheme, headersOf('webhook'), BODY)).toBe('valid');
    expect(verify(scheme, headersOf('Svix'), BODY)).toBe('valid');
    expect(verify(scheme, [...headersOf('webhook'), ...headersOf('svix')], BODY)).toBe('valid');
  });

  test('ignores signatures of other versions, and accepts any that matches', () => {
    const other = `v1a,${'A'.repeat(86)}== v1,${'A'.repeat(43)}= ${SIGNATURE}`;
    expect(verify(scheme, headersOf('webhook', other), BODY)).toBe('valid');
    expect(verify(scheme, headersOf('webhook', `v1,${'A'.repeat(43)}=`), BODY)).toBe('mismatch');
  });

  test('binds the signature to id, timestamp and body', () => {
    expect(verify(scheme, headersOf('webhook', SIGNATURE, `${ID}2`), BODY)).toBe('mismatch');
    expect(verify(scheme, headersOf('webhook', SIGNATURE, ID, String(AT + 1)), BODY)).toBe('mismatch');
    expect(verify(scheme, headersOf('webhook'), `${BODY}\n`)).toBe('mismatch');
  });

  test('refuses a timestamp outside the tolerance', () => {
    expect(verify(scheme, headersOf('webhook'), BODY, NOW + TOLERANCE + 1000)).toBe('too_old');
    expect(verify(scheme, headersOf('webhook'), BODY, NOW - TOLERANCE - 1)).toBe('too_new');
  });

  test('refuses an id with a full stop, which would allow another split of the same text', () => {
    const id = 'msg.1';
    const signature = `v1,${hmac(Buffer.from(SECRET.slice(6), 'base64'), `${id}.${AT}.${BODY}`).toString('base64')}`;
    expect(verify(scheme, headersOf('webhook', signature, id), BODY)).toBe('malformed');
  });

  test.each([
    ['an absent id', headersOf('webhook').slice(2), 'missing'],
    ['an absent signature', headersOf('webhook').slice(0, 4), 'missing'],
    [
      'a set of names that mixes both',
      [...headersOf('webhook').slice(0, 4), ...headersOf('svix').slice(4)],
      'malformed',
    ],
    ['sets of names that differ', [...headersOf('webhook'), ...headersOf('svix', SIGNATURE, 'msg_2')], 'malformed'],
    ['an empty id', headersOf('webhook', SIGNATURE, ''), 'malformed'],
    ['a long id', headersOf('webhook', SIGNATURE, 'm'.repeat(257)), 'malformed'],
    ['a fraction of a second', headersOf('webhook', SIGNATURE, ID, `${AT}.5`), 'malformed'],
    ['a signature without its version', headersOf('webhook', SIGNATURE.slice(3)), 'malformed'],
    ['a signature without its padding', headersOf('webhook', SIGNATURE.slice(0, -1)), 'malformed'],
    ['base64 of URLs', headersOf('webhook', SIGNATURE.replaceAll('/', '_')), 'malformed'],
    ['17 signatures', headersOf('webhook', Array.from({ length: 17 }, () => SIGNATURE).join(' ')), 'malformed'],
  ])('refuses %s', (_, headers, reason) => {
    expect(verify(scheme, headers, BODY)).toBe(reason);
  });
});

describe('github', () => {
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
  const scheme = githubScheme(["It's a Secret to Everybody"]);
  const SIGNATURE = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';

  test('accepts the documented vector, whatever the time', () => {
    expect(verify(scheme, ['X-Hub-Signature-256', SIGNATURE], 'Hello, World!', 0)).toBe('valid');
    expect(verify(scheme, ['X-Hub-Signature-256', SIGNATURE], 'Hello, World?')).toBe('mismatch');
  });

  test('does not accept the header of SHA-1 instead', () => {
    expect(verify(scheme, ['X-Hub-Signature', SIGNATURE], 'Hello, World!')).toBe('missing');
    expect(verify(scheme, ['X-Hub-Signature-256', SIGNATURE.replace('sha256', 'sha1')], 'Hello, World!')).toBe(
      'malformed',
    );
  });
});

describe('hmac', () => {
  const BODY = 'a=1&b=2';
  const options: HmacSchemeOptions = {
    header: 'X-Signature',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: '',
    timestamp: undefined,
    signed: '{body}',
    secrets: ['shared secret'],
  };

  test.each(['sha1', 'sha256', 'sha512'] as const)('verifies %s in each encoding', (algorithm) => {
    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      const value = createHmac(algorithm, 'shared secret').update(BODY).digest(encoding);
      const scheme = hmacScheme({ ...options, algorithm, encoding, prefix: 'v1:' });
      expect(verify(scheme, ['x-signature', `v1:${value}`], BODY)).toBe('valid');
      expect(verify(scheme, ['x-signature', value], BODY)).toBe('malformed');
    }
  });

  test('verifies a text with a timestamp around the body, as Slack signs it', () => {
    // https://docs.slack.dev/authentication/verifying-requests-from-slack
    const slack = hmacScheme({
      ...options,
      header: 'X-Slack-Signature',
      prefix: 'v0=',
      timestamp: { header: 'X-Slack-Request-Timestamp', unit: 's', tolerance: TOLERANCE },
      signed: 'v0:{timestamp}:{body}',
      secrets: ['8f742231b10e8888abcd99yyyzzz85a5'],
    });
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
    const headers = [
      'X-Slack-Request-Timestamp',
      '1531420618',
      'X-Slack-Signature',
      'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    ];
    expect(verify(slack, headers, body, 1_531_420_618_000)).toBe('valid');
    expect(verify(slack, headers, body)).toBe('too_old');
    expect(verify(slack, headers.slice(2), body)).toBe('missing');
  });

  test('compares a timestamp in milliseconds as such', () => {
    const scheme = hmacScheme({
      ...options,
      timestamp: { header: 'X-Time', unit: 'ms', tolerance: 1000 },
      signed: '{body}|{timestamp}',
    });
    const headersAt = (time: string): string[] => [
      'X-Time',
      time,
      'X-Signature',
      hmac('shared secret', `${BODY}|${time}`).toString('hex'),
    ];
    expect(verify(scheme, headersAt(String(NOW - 1000)), BODY)).toBe('valid');
    expect(verify(scheme, headersAt(String(NOW - 1001)), BODY)).toBe('too_old');
    expect(verify(scheme, headersAt(String(AT)), BODY)).toBe('too_old');
    expect(verify(scheme, headersAt('1e12'), BODY)).toBe('malformed');
  });
});
