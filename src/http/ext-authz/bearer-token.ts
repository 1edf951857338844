import { createHash, timingSafeEqual } from 'node:crypto';

/** Of one length, whatever is hashed. */
export function digestToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** In constant time: how much of a guess was right, nobody learns. @param authorization `Bearer …` */
export function showsToken(authorization: string | undefined, digest: Buffer): boolean {
  const given = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  return given !== undefined && timingSafeEqual(digestToken(given), digest);
}
