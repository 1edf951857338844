import { TLSSocket } from 'node:tls';
import { isClientName } from '../../config/auth/key-file.ts';
import type { Millis } from '../../core/scalars.ts';
import { type AuthResult, rejected } from './auth-types.ts';

/** Where the name of a client is in its certificate. */
export interface CertificateRules {
  readonly name: 'subject' | 'san';
  readonly namePrefix?: string | undefined;
}

/** The parts of `PeerCertificate` that are used. */
export interface PresentedCertificate {
  readonly subject: { readonly CN?: string | string[] };
  readonly subjectaltname?: string | undefined;
  readonly valid_to: string;
}

interface VerifiedConnection {
  readonly result: AuthResult;
  /** Milliseconds of the epoch. */
  readonly validUntil: Millis;
}

/** Client certificates (mutual TLS). OpenSSL verifies them in the handshake, so that a connection is looked at once. */
export class CertificateCheck {
  readonly #rules: CertificateRules;
  readonly #wallClock: () => Millis;
  readonly #connections = new WeakMap<object, VerifiedConnection>();

  constructor(rules: CertificateRules, wallClock: () => Millis) {
    this.#rules = rules;
    this.#wallClock = wallClock;
  }

  /** Undefined if the client has sent no certificate. @param socket of its connection */
  verify(socket: object): AuthResult | undefined {
    let known = this.#connections.get(socket);
    if (known === undefined) {
      if (!(socket instanceof TLSSocket)) return undefined;
      // Node 24.21 types an absent certificate as one, and calls a resumed session without one authorized (TLS 1.3).
      const certificate: Partial<PresentedCertificate> | undefined = socket.getPeerCertificate();
      const { subject, valid_to } = certificate ?? {};
      if (subject === undefined || valid_to === undefined) return undefined;
      const result = socket.authorized
        ? nameIn({ ...certificate, subject, valid_to }, this.#rules)
        : rejected('untrusted_certificate');
      known = { result, validUntil: Date.parse(valid_to) };
      this.#connections.set(socket, known);
    }
    // A connection may be open for longer than its certificate is valid.
    return this.#wallClock() < known.validUntil ? known.result : rejected('expired');
  }
}

/** The result for a verified certificate. It needs exactly one common name; or takes its first URI, else DNS name, else address. */
export function nameIn({ subject, subjectaltname }: PresentedCertificate, rules: CertificateRules): AuthResult {
  const found = rules.name === 'subject' ? subject.CN : alternativeName(subjectaltname);
  if (typeof found !== 'string' || found === '') return rejected('no_name');
  const name = `${rules.namePrefix ?? ''}${found}`;
  return isClientName(name) ? { kind: 'known', principal: { name, provenBy: 'certificate' } } : rejected('no_name');
}

/** @param text such as `DNS:a.example, URI:spiffe://b`; Node quotes values that are ambiguous in it, and none of these is a name */
function alternativeName(text = ''): string | undefined {
  if (text.includes('"')) return undefined;
  const entries = text.split(', ');
  for (const kind of ['URI:', 'DNS:', 'email:']) {
    const entry = entries.find((each) => each.startsWith(kind));
    if (entry !== undefined) return entry.slice(kind.length);
  }
  return undefined;
}
