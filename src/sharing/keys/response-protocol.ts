/** The messages between a worker and its primary, which keeps the responses to writes. */
import type { Millis } from '../../core/scalars.ts';

export type ResponseOperation =
  | { readonly do: 'read'; readonly query: number; readonly id: string }
  /** `bytes`: in base64. */
  | {
      readonly do: 'keep';
      readonly query: number;
      readonly id: string;
      readonly bytes: string;
      readonly lifetime: Millis;
    }
  | { readonly do: 'remove'; readonly write: string };

/** `bytes`: in base64; undefined if none is kept, and for a `keep`. `keptFor`: see `ResponseStore.read`. */
export interface ResponseReply {
  readonly query: number;
  readonly bytes: string | undefined;
  readonly keptFor?: Millis;
}
