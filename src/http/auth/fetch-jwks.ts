import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';
import type { Millis } from '../../core/scalars.ts';
import { readPem } from '../tls/pem.ts';
import type { FetchJwks } from './jwks.ts';

const TIMEOUT: Millis = 5000;
/** Issuers have a few keys of a few KB. */
const MAX_BYTES = 1024 * 1024;

export interface JwksUrl {
  readonly url: string;
  /** CA certificates, as PEM text or the path of a PEM file; undefined: those of the system. */
  readonly ca: string | undefined;
  /** A file with a bearer token, which may be replaced at any time. */
  readonly tokenFile: string | undefined;
}

/**
 * Fetches a JWKS over a connection of its own, which is closed afterwards: fetches are rare. Follows no redirect. Uses node:https,
 * because the built program has only the parts of undici that attempts need.
 */
export function makeJwksFetch({ url, ca, tokenFile }: JwksUrl): FetchJwks {
  const get = url.startsWith('https:') ? getSecure : getPlain;
  return async () => {
    const token = tokenFile === undefined ? undefined : (await readFile(tokenFile, 'utf8')).trim();
    const options = {
      agent: false,
      headers: { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      signal: AbortSignal.timeout(TIMEOUT),
      ...(ca === undefined ? {} : { ca: readPem(ca) }),
    } as const;
    return new Promise((resolve, reject) => {
      get(url, options, (response) => void readText(response).then(resolve, reject)).on('error', reject);
    });
  };
}

async function readText(response: IncomingMessage): Promise<string> {
  const { statusCode } = response;
  try {
    if (statusCode !== 200) throw new Error(`the JWKS URL answered ${statusCode}`);
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new Error('the JWKS URL answered with more than 1 MiB');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } finally {
    response.destroy();
  }
}
