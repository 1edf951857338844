import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose';

/** Issuers publish two or three keys. Each one that is tried costs a verification, also for a forged token. */
const MAX_KEYS = 8;

/**
 * Verifies a token. One without a key id (RFC 7515 §4.1.4: `kid` is optional) is verified by each key of its algorithm, because an
 * issuer publishes two while it replaces one.
 * @returns the claims of the token. Rejects with an error of jose, or that of `getKey`
 */
export async function verifyByAnyKey(
  token: string,
  getKey: JWTVerifyGetKey,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  const { errors, jwtVerify } = await import('jose'); // loaded at the first token
  try {
    return (await jwtVerify(token, getKey, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tried = 0;
    for await (const key of error) {
      tried += 1;
      if (tried > MAX_KEYS) break;
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}
