/** The name in a client certificate. */
import { expect, test } from 'vitest';
import { nameIn, type PresentedCertificate } from '../../../src/http/auth/certificate-check.ts';

function named(name: 'subject' | 'san', fields: Partial<PresentedCertificate>): string {
  const result = nameIn({ subject: {}, valid_to: '', ...fields }, { name });
  return result.kind === 'known' ? result.principal.name : result.why;
}

test.each<[string, Partial<PresentedCertificate>]>([
  ['till', { subject: { CN: 'till' } }],
  ['no_name', { subject: { CN: ['till', 'shop'] } }],
  ['no_name', { subject: { CN: 'two words' } }],
  ['no_name', { subjectaltname: 'DNS:till' }],
])('is %s in the subject: %o', (expected, fields) => {
  expect(named('subject', fields)).toBe(expected);
});

test.each<[string, string | undefined]>([
  ['spiffe://shop/till', 'DNS:a.example, URI:spiffe://shop/till, email:a@b.example'],
  ['a.example', 'IP Address:192.0.2.1, email:a@b.example, DNS:a.example, DNS:b.example'],
  ['a@b.example', 'email:a@b.example'],
  ['no_name', 'IP Address:192.0.2.1'],
  ['no_name', 'DNS:"a.example\\u002c DNS:b.example", URI:spiffe://shop/till'],
  ['no_name', 'URI:, DNS:a'],
  ['no_name', undefined],
])('is %s in the alternative names: %s', (expected, subjectaltname) => {
  expect(named('san', { subjectaltname })).toBe(expected);
});
