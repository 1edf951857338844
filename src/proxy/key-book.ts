import { randomBytes } from 'node:crypto';
import type { Bound } from '../policy/bound.ts';
import { KeyClaims } from '../policy/key-claims.ts';
import { SettledKeys } from '../policy/settled-keys.ts';
import { UnsettledKeys } from '../policy/unsettled-keys.ts';
import { Hmac } from './hmac.ts';

/** What this process knows of idempotency keys: those under way, those of which it is open what came of them, and those answered. */
export class KeyBook {
  readonly claims = new KeyClaims();
  readonly unsettled = new UnsettledKeys();
  readonly settled = new SettledKeys();
  readonly #hmac = new Hmac(randomBytes(32));

  get bounds(): readonly Bound[] {
    return [this.claims.bound, this.unsettled.bound, this.settled.bound];
  }

  /** What a write goes by when it is over: of its key and its credential nothing is kept. */
  digest(write: string): string {
    return this.#hmac.digest(write).toString('latin1', 0, 16);
  }
}
