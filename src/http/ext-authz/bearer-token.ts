import { createHash, timingSafeEqual } from 'node:crypto';

/** A digest, so that tokens of any length are compared in constant time. */
export function digestToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Compares in constant time, so that a guess reveals nothing. @param authorization `Bearer …` */
export function hasBearerToken(authorization: string | undefined, digest: Buffer): boolean {
  const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  return token !== undefined && timingSafeEqual(digestToken(token), digest);
}
