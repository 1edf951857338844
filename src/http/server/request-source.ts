import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Inbound } from './server-request.ts';
import type { Outbound } from './server-response.ts';
import type { Problem } from '../response/problem-details.ts';
import type { Refusals } from '../response/rejections.ts';
import type { Upgrade } from './upgrade.ts';

/** Where requests come from: a listener of our own, or the server of a program that we are a part of. */
export interface Entrance {
  readonly bounds: readonly Bound[];
  /** Requests that have been read, and wait for their turn. */
  readonly waiting: number;
  /**
   * From now on requests come.
   * @returns where: `https://127.0.0.1:8443`, `unix:/run/tidegate.sock`; empty where that is not ours to say
   * @throws the error of listen(2), with its code
   */
  open(reception: Reception): Promise<string>;
  /** Takes no new connections, and ends each one with the response it is at. */
  drain(): void;
  /** Resolves when what was written has gone out. */
  settle(): Promise<void>;
  /** Ends what is left, at once. */
  close(): Promise<void>;
}

/** Where they go. */
export interface Reception {
  readonly refusals: Refusals;
  /** Why there is no room for another request; undefined when there is. */
  full(): Problem | undefined;
  /** Why a request that is about to begin is not to; undefined when it is. */
  shed(): Problem | undefined;
  handle(request: Inbound, response: Outbound, upgrade?: Upgrade): void;
}
