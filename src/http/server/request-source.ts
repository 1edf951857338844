import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { DescribedChecks } from '../ext-authz/ext-authz-options.ts';
import type { HttpServerRequest } from './server-request.ts';
import type { HttpServerResponse } from './server-response.ts';
import type { Problem } from '../response/problem.ts';
import type { Rejections } from '../response/rejections.ts';
import type { Upgrade } from './upgrade.ts';

/** Where requests come from: the proxy's own listener, or the server of a host program. */
export interface RequestSource {
  readonly bounds: readonly ResourceBound[];
  /** Requests that arrived, and whose handling begins soon. */
  readonly startingCount: number;
  /**
   * Starts accepting requests.
   * @returns the address: `https://127.0.0.1:8443`, `unix:/run/tidegate.sock`; empty for a host program's server
   * @throws the error of listen(2), with its code
   */
  open(sink: RequestSink): Promise<string>;
  /** Takes no new connections, and closes each one after its current response. */
  drain(): void;
  /** Resolves when everything written has been sent. */
  flush(): Promise<void>;
  /** Closes everything at once. */
  close(): Promise<void>;
}

/**
 * Counts a request that has no handler, in `limits.requests`. Returns a function that ends this; to be called once.
 * @param isRefused there was no room for it
 */
export type CountRequest = (request: HttpServerRequest, isRefused: boolean) => () => void;

/** Where requests go: the proxy. */
export interface RequestSink {
  readonly rejections: Rejections;
  /** See `RequestCapacity`. */
  problemIfFull(request: HttpServerRequest): Problem | undefined;
  /** See `RequestCapacity`. */
  problemIfOverloaded(request: HttpServerRequest): Problem | undefined;
  readonly count: CountRequest;
  /** Whether requests wait in a queue that a timer serves. */
  readonly hasQueued: boolean;
  handle(request: HttpServerRequest, response: HttpServerResponse, upgrade?: Upgrade): void;
  readonly extAuthz: DescribedChecks;
}
