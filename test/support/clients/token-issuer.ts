/** An issuer of JSON Web Tokens, with a JWKS endpoint. */
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { atEnd } from '../at-end.ts';

export const ISSUER = 'https://issuer.example.com';
export const AUDIENCE = 'payments';

export interface TokenOptions {
  readonly issuer?: string;
  readonly audience?: string;
  readonly expires?: string;
  readonly notBefore?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

export interface TokenIssuer {
  readonly url: string;
  /** The answers of the endpoint so far. */
  readonly fetches: () => number;
  /** The header of the last request for the keys. */
  readonly lastAuthorization: () => string | undefined;
  readonly issue: (subject: string, options?: TokenOptions) => Promise<string>;
  /** The JWKS as text. */
  readonly jwks: () => string;
  /** Signs with a new key from now on; the old one is no longer in the JWKS. */
  readonly rotate: () => Promise<void>;
  /** The status of the endpoint from now on: 200 at first. */
  readonly answerWith: (status: number) => void;
}

/** Listens until the test ends. @param tls the certificate of its endpoint; plain HTTP without */
export async function startIssuer(tls?: { readonly cert: string; readonly key: string }): Promise<TokenIssuer> {
  let fetches = 0;
  let status = 200;
  let generation = 0;
  let privateKey: CryptoKey;
  let jwks = '';
  const rotate = async (): Promise<void> => {
    const pair = await generateKeyPair('ES256', { extractable: true });
    generation += 1;
    privateKey = pair.privateKey;
    const jwk = await exportJWK(pair.publicKey);
    jwks = JSON.stringify({ keys: [{ ...jwk, kid: `key-${generation}`, alg: 'ES256', use: 'sig' }] });
  };
  await rotate();
  let authorization: string | undefined;
  const answer: RequestListener = ({ headers }, response) => {
    fetches += 1;
    authorization = headers.authorization;
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(status === 200 ? jwks : '{}');
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    fetches: () => fetches,
    lastAuthorization: () => authorization,
    jwks: () => jwks,
    rotate,
    answerWith: (next) => {
      status = next;
    },
    issue: (subject, { issuer = ISSUER, audience = AUDIENCE, expires = '1h', notBefore, claims = {} } = {}) => {
      const token = new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: `key-${generation}` })
        .setSubject(subject)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime(expires);
      return (notBefore === undefined ? token : token.setNotBefore(notBefore)).sign(privateKey);
    },
  };
}
