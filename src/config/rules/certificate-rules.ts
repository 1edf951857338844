import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import type { ConfigEnvironment } from '../load/substitute.ts';
import { describeFileError } from '../load/substitute.ts';

/** The start of every PEM block (RFC 7468, section 2). */
const BEGIN = '-----BEGIN ';

interface PemSettings {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly passphrase?: string | undefined;
}

/** Certificates and keys are PEM text or name a PEM file, and belong together. Messages never repeat their contents. */
export function* checkCertificates(
  { listen, upstreams, state, auth }: PartialConfig,
  readFile: ConfigEnvironment['readFile'],
): Generator<RuleFinding> {
  if (listen?.tls !== undefined) yield* checkTls(['listen', 'tls'], listen.tls, readFile);
  if (listen?.tls?.clientCa !== undefined) {
    const read = readPem(listen.tls.clientCa, readFile);
    const path = ['listen', 'tls', 'clientCa'];
    if ('problem' in read) yield mistakeAt(path, read.problem);
    else yield* checkCertificate(path, read.text);
  }
  for (const [name, { tls }] of upstreams) {
    if (tls !== undefined) yield* checkTls(['upstreams', name, 'tls'], tls, readFile);
  }
  if (state.tls !== undefined) yield* checkTls(['state', 'tls'], state.tls, readFile);
  if (auth?.jwt?.ca !== undefined) yield* checkTls(['clients', 'auth', 'jwt'], { ca: auth.jwt.ca }, readFile);
}

function* checkTls(path: Path, tls: PemSettings, readFile: ConfigEnvironment['readFile']): Generator<RuleFinding> {
  const texts: { ca?: string; cert?: string; key?: string } = {};
  for (const part of ['ca', 'cert', 'key'] as const) {
    const value = tls[part];
    if (value === undefined) continue;
    const read = readPem(value, readFile);
    if ('problem' in read) yield mistakeAt([...path, part], read.problem);
    else texts[part] = read.text;
  }
  const { ca, cert, key } = texts;
  if (ca !== undefined) yield* checkCertificate([...path, 'ca'], ca);
  if (cert === undefined) return;
  const isValid = yield* checkCertificate([...path, 'cert'], cert);
  if (key === undefined || !isValid) return;
  const { passphrase } = tls;
  const problem = findKeyMismatch({ cert, key, ...(passphrase === undefined ? {} : { passphrase }) });
  if (problem !== undefined) yield mistakeAt([...path, 'key'], problem);
}

function readPem(value: string, readFile: ConfigEnvironment['readFile']): { text: string } | { problem: string } {
  if (value.includes(BEGIN)) return { text: value };
  try {
    const text = readFile(value);
    return text.includes(BEGIN) ? { text } : { problem: `not a PEM file: it contains no ${BEGIN.trim()}` };
  } catch (error) {
    return { problem: `cannot be read: ${describeFileError(error)}` };
  }
}

/** Checks the first certificate in the text. Returns whether it is readable. */
function* checkCertificate(path: Path, text: string): Generator<RuleFinding, boolean> {
  let expiresAt: string;
  try {
    expiresAt = new X509Certificate(text).validTo;
  } catch {
    yield mistakeAt(path, 'contains no readable certificate');
    return false;
  }
  if (Date.parse(expiresAt) < Date.now()) yield warningAt(path, `the certificate has expired: ${expiresAt}`);
  return true;
}

/** PKCS #8 (RFC 7468, section 11), and the older format of OpenSSL (RFC 1421, section 4.6.1.1). */
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/**
 * Node 24 reports a missing passphrase as a wrong one. OpenSSL detects a wrong one by the padding of the decrypted text, which
 * is right in one of 256 cases: the error then says that there is no key.
 */
function findKeyMismatch(pair: { cert: string; key: string; passphrase?: string }): string | undefined {
  try {
    createSecureContext(pair);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') return 'does not belong to the certificate';
    const isEncrypted = code === 'ERR_OSSL_BAD_DECRYPT' || ENCRYPTED.test(pair.key);
    if (!isEncrypted) return 'contains no readable private key';
    return pair.passphrase === undefined ? 'is encrypted: set passphrase' : 'the passphrase does not decrypt it';
  }
}
