import { RecencyMap } from '../collections/recency-map.ts';
import { listCandidateParts, type RequestAttributes } from '../rate/breaker/request-attributes.ts';

/** A request whose attributes are computed on first use. */
export interface AttributedRequest {
  readonly attributes: RequestAttributes;
}

/** The bound on the parts that are remembered; a request belongs to about ten. */
export const MAX_PARTS = 1000;

const SEVERAL = -1;

/**
 * The parts of all requests that fail at several endpoints, each without a success anywhere since the first of these failures.
 * Their failures say nothing about an endpoint.
 */
export class FailingParts {
  /** The endpoint at which requests of the part have failed since one succeeded, or `SEVERAL`. */
  readonly #endpoints = new RecencyMap<number, number>();

  get size(): number {
    return this.#endpoints.size;
  }

  /** Whether a part of the request fails at several endpoints. */
  hasPartOf(request: AttributedRequest): boolean {
    return this.size > 0 && partKeysOf(request).some((key) => this.#endpoints.get(key) === SEVERAL);
  }

  onSuccess(request: AttributedRequest): void {
    if (this.size > 0) for (const key of partKeysOf(request)) this.#endpoints.delete(key);
  }

  onFailure(request: AttributedRequest, endpoint: number): void {
    for (const key of partKeysOf(request)) {
      this.#endpoints.set(key, (this.#endpoints.get(key) ?? endpoint) === endpoint ? endpoint : SEVERAL);
      if (this.size > MAX_PARTS) this.#endpoints.deleteOldest();
    }
  }
}

/** One number for each part that the request may belong to: the sum of the hashes that define it. */
function partKeysOf({ attributes }: AttributedRequest): number[] {
  return listCandidateParts(attributes).map((part) => part.reduce((sum, hash) => sum + hash, 0));
}
