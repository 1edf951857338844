import { describe, expect, test } from 'vitest';
import type { Acknowledgement, BodyCondition } from '../../../src/core/delivery/acknowledgement.ts';
import {
  MAX_ACKNOWLEDGEMENT_BYTES,
  acknowledgementBytes,
  isAcknowledged,
} from '../../../src/core/delivery/acknowledgement.ts';

const OK: ReadonlySet<number> = new Set([200, 204]);
const rule = (body?: BodyCondition): Acknowledgement => ({ statuses: OK, body });
const text = rule({ kind: 'text', equals: 'success' });
const json = (equals: string | number | boolean) => rule({ kind: 'json', path: ['result', 'code'], equals });

const acknowledges = (acknowledgement: Acknowledgement, body: string | Uint8Array, status = 200): boolean =>
  isAcknowledged(acknowledgement, status, Buffer.from(body));

describe('the status', () => {
  test('is one of those listed', () => {
    expect(acknowledges(rule(), 'no', 204)).toBe(true);
    expect(acknowledges(rule(), 'yes', 202)).toBe(false);
    expect(acknowledges(text, 'success', 500)).toBe(false);
  });

  test('decides whether the body is read, and how much of it', () => {
    expect(acknowledgementBytes(rule(), 200)).toBe(0);
    expect(acknowledgementBytes(text, 500)).toBe(0);
    expect(acknowledgementBytes(text, 200)).toBe(MAX_ACKNOWLEDGEMENT_BYTES);
  });
});

describe('a text', () => {
  test.each(['success', ' success\r\n', '\ufeffsuccess'])('acknowledges: %j', (body) => {
    expect(acknowledges(text, body)).toBe(true);
  });

  test.each(['', 'SUCCESS', 'successful', '"success"', 'success success', '{"code":"success"}'])(
    'does not acknowledge: %j',
    (body) => {
      expect(acknowledges(text, body)).toBe(false);
    },
  );

  test('does not acknowledge if it is not UTF-8', () => {
    expect(acknowledges(text, Buffer.from('success\xff', 'latin1'))).toBe(false);
  });
});

describe('a field of a JSON body', () => {
  test('has the value, of its type', () => {
    expect(acknowledges(json('SUCCESS'), '{"result": {"code": "SUCCESS"}}')).toBe(true);
    expect(acknowledges(json(0), '{"result":{"code":0}}')).toBe(true);
    expect(acknowledges(json(0), '{"result":{"code":-0.0}}')).toBe(true);
    expect(acknowledges(json(true), '{"result":{"code":true}}')).toBe(true);
  });

  test.each([
    '{"result":{"code":"0"}}',
    '{"result":{"code":false}}',
    '{"result":{"code":null}}',
    '{"result":{"code":[0]}}',
    '{"result":{"code":{}}}',
    '{"result":{"code":0},"result":{}}',
    '{"result":{"code":0}',
    '{"code":0}',
    '0',
    '',
  ])('does not acknowledge: %s', (body) => {
    expect(acknowledges(json(0), body)).toBe(false);
  });
});

test('a body that is too long does not acknowledge, whatever it says', () => {
  const padded = (length: number) => Buffer.from('success'.padEnd(length));
  expect(acknowledges(text, padded(MAX_ACKNOWLEDGEMENT_BYTES))).toBe(true);
  expect(acknowledges(text, padded(MAX_ACKNOWLEDGEMENT_BYTES + 1))).toBe(false);
  expect(acknowledges(rule(), padded(MAX_ACKNOWLEDGEMENT_BYTES + 1))).toBe(true);
});
