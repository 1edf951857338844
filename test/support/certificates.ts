/** Creates certificates for one test file with OpenSSL: `name.crt` and `name.key` in a folder. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificates {
  /** Returns the path of a file such as `server.crt`. */
  readonly path: (name: string) => string;
  readonly read: (name: string) => string;
  /** Issues a certificate signed by the CA `ca`. @param more arguments of `openssl req -x509` */
  readonly issue: (name: string, ...more: string[]) => void;
  /** Issues `server` for 127.0.0.1, and returns it as PEM texts. */
  readonly issueServer: () => { readonly key: string; readonly cert: string };
  /** Issues an expired certificate signed by `ca`. */
  readonly issueExpired: (name: string, subjectAltName: string) => void;
  /** Creates a self-signed certificate. */
  readonly selfSign: (name: string, ...more: string[]) => void;
  readonly remove: () => void;
}

/** Creates the folder and its own CA, `ca`. A proxy warns of a certificate that expires within seven days. */
export function makeCertificates(days = 2): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-tls-'));
  const path = (name: string): string => join(folder, name);
  const selfSign = (name: string, ...more: string[]): void => {
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', String(days)],
        ...['-keyout', path(`${name}.key`), '-out', path(`${name}.crt`), '-subj', `/CN=${name}`],
        ...more,
      ],
      { stdio: 'pipe' },
    );
  };
  const read = (name: string): string => readFileSync(path(name), 'utf8');
  const issue = (name: string, ...more: string[]): void =>
    selfSign(
      name,
      ...['-CA', path('ca.crt'), '-CAkey', path('ca.key'), '-addext', 'basicConstraints=critical,CA:FALSE'],
      ...more,
    );
  selfSign('ca');
  return {
    path,
    read,
    issue,
    issueServer: () => {
      issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
      return { key: read('server.key'), cert: read('server.crt') };
    },
    issueExpired: (name, subjectAltName) => {
      selfSign(name); // for its key
      const request = ['-in', path(`${name}.crt`), '-signkey', path(`${name}.key`), '-x509toreq', '-out', path('csr')];
      execFileSync('openssl', ['x509', ...request], { stdio: 'pipe' });
      writeFileSync(path('extensions'), `subjectAltName=${subjectAltName}\n`);
      execFileSync(
        'openssl',
        [
          ...['x509', '-req', '-in', path('csr'), '-CA', path('ca.crt'), '-CAkey', path('ca.key'), '-days', '-1'],
          ...['-extfile', path('extensions'), '-out', path(`${name}.crt`)],
        ],
        { stdio: 'pipe' },
      );
    },
    selfSign: (name, ...more) => selfSign(name, '-addext', 'basicConstraints=critical,CA:FALSE', ...more),
    remove: () => rmSync(folder, { recursive: true }),
  };
}

/**
 * Returns a self-signed certificate and its key as one PEM text. Made without OpenSSL: X.509 version 1, valid from 2020, for an
 * Ed25519 key.
 */
export function makePem(expiresAt = new Date('2049-12-31T23:59:59Z')): string {
  const end = `${expiresAt.toISOString().replaceAll(/\D/g, '').slice(2, 14)}Z`; // UTCTime
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const algorithm = der(0x30, Buffer.from('06032b6570', 'hex'));
  const name = der(0x30, der(0x31, der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from('test')))));
  const validity = der(0x30, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from(end)));
  const serial = der(0x02, Buffer.from([1]));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const signed = der(0x30, serial, algorithm, name, validity, name, spki);
  const signature = der(0x03, Buffer.from([0]), sign(null, signed, privateKey));
  const base64 = der(0x30, signed, algorithm, signature).toString('base64');
  const certificate = `-----BEGIN CERTIFICATE-----\n${base64.replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
  return certificate + String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

/** Encodes an ASN.1 value of less than 64 KiB in DER. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}
