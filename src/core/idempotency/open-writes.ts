import type { Millis } from '../scalars.ts';

/** A write without a key that is being sent, or may have taken effect. If its process ends now, nobody learns its outcome. */
export interface OpenWrite {
  readonly requestId: string;
  readonly route: string;
  readonly upstream: string;
  readonly method: string;
  /** When it was sent, in milliseconds since 1970. */
  readonly sentAt: Millis;
}

/** Remembers open writes, so that the next process can report those that were interrupted. */
export interface OpenWriteLog {
  /** The write is open. It may have been open before. */
  onSent(write: OpenWrite): void;
  onEnd(requestId: string): void;
}
