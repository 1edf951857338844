/** Certificates made for one test file, by OpenSSL: `name.crt` and `name.key` in a folder. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificates {
  /** Of `server.crt`, say. */
  readonly path: (name: string) => string;
  readonly read: (name: string) => string;
  /** One signed by the authority `ca`. @param more arguments of `openssl req -x509` */
  readonly issue: (name: string, ...more: string[]) => void;
  /** One that `ca` has signed, and that has expired. */
  readonly issueExpired: (name: string, subjectAltName: string) => void;
  /** One that vouches for itself. */
  readonly selfSign: (name: string, ...more: string[]) => void;
  readonly remove: () => void;
}

/** With an authority of its own, `ca`. */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-tls-'));
  const path = (name: string): string => join(folder, name);
  const selfSign = (name: string, ...more: string[]): void => {
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
        ...['-keyout', path(`${name}.key`), '-out', path(`${name}.crt`), '-subj', `/CN=${name}`],
        ...more,
      ],
      { stdio: 'pipe' },
    );
  };
  selfSign('ca');
  return {
    path,
    read: (name) => readFileSync(path(name), 'utf8'),
    issue: (name, ...more) =>
      selfSign(
        name,
        ...['-CA', path('ca.crt'), '-CAkey', path('ca.key'), '-addext', 'basicConstraints=critical,CA:FALSE'],
        ...more,
      ),
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

/** A certificate and its key in one text, which serves wherever PEM is wanted. */
export function makePem(): string {
  const certificates = makeCertificates();
  const text = certificates.read('ca.crt') + certificates.read('ca.key');
  certificates.remove();
  return text;
}
