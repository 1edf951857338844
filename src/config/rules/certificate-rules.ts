import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { Checked } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import type { Draft } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import type { Surroundings } from '../load/substitute.ts';
import { explain } from '../load/substitute.ts';

/** What every PEM text has before its first block (RFC 7468, section 2). */
const BEGIN = '-----BEGIN ';

interface Written {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly passphrase?: string | undefined;
}

/** Certificates and keys are PEM, or name a file that is; and they fit each other. Messages never repeat what stands there. */
export function* checkPem({ listen, upstreams, state }: Draft, readFile: Surroundings['readFile']): Generator<Checked> {
  if (listen?.tls !== undefined) yield* checkTls(['listen', 'tls'], listen.tls, readFile);
  for (const [name, { tls }] of upstreams) {
    if (tls !== undefined) yield* checkTls(['upstreams', name, 'tls'], tls, readFile);
  }
  if (state.tls !== undefined) yield* checkTls(['state', 'tls'], state.tls, readFile);
}

function* checkTls(path: Path, tls: Written, readFile: Surroundings['readFile']): Generator<Checked> {
  const texts: { ca?: string; cert?: string; key?: string } = {};
  for (const part of ['ca', 'cert', 'key'] as const) {
    const value = tls[part];
    if (value === undefined) continue;
    const read = readPem(value, readFile);
    if ('problem' in read) yield mistake([...path, part], read.problem);
    else texts[part] = read.text;
  }
  const { ca, cert, key } = texts;
  if (ca !== undefined) yield* checkCertificate([...path, 'ca'], ca);
  if (cert === undefined) return;
  const sound = yield* checkCertificate([...path, 'cert'], cert);
  if (key === undefined || !sound) return;
  const { passphrase } = tls;
  const problem = findMisfit({ cert, key, ...(passphrase === undefined ? {} : { passphrase }) });
  if (problem !== undefined) yield mistake([...path, 'key'], problem);
}

function readPem(value: string, readFile: Surroundings['readFile']): { text: string } | { problem: string } {
  if (value.includes(BEGIN)) return { text: value };
  try {
    const text = readFile(value);
    return text.includes(BEGIN) ? { text } : { problem: `not a PEM file: there is no ${BEGIN.trim()} in it` };
  } catch (error) {
    return { problem: `cannot be read: ${explain(error)}` };
  }
}

/** Of the first certificate in it. */
function* checkCertificate(path: Path, text: string): Generator<Checked, boolean> {
  let until: string;
  try {
    until = new X509Certificate(text).validTo;
  } catch {
    yield mistake(path, 'there is no certificate in it that can be read');
    return false;
  }
  if (Date.parse(until) < Date.now()) yield warning(path, `the certificate has expired: ${until}`);
  return true;
}

/** PKCS #8 (RFC 7468, section 11), and what OpenSSL wrote before it (RFC 1421, section 4.6.1.1). */
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/**
 * Node 24 tells a passphrase that is missing as one that is wrong. A wrong one is found out by the padding of what comes of
 * it, which is right in one case of 256: then it is told as no key at all.
 */
function findMisfit(pair: { cert: string; key: string; passphrase?: string }): string | undefined {
  try {
    createSecureContext(pair);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') return 'does not belong to the certificate';
    const isEncrypted = code === 'ERR_OSSL_BAD_DECRYPT' || ENCRYPTED.test(pair.key);
    if (!isEncrypted) return 'there is no private key in it that can be read';
    return pair.passphrase === undefined ? 'is encrypted: it needs its passphrase' : 'the passphrase does not open it';
  }
}
