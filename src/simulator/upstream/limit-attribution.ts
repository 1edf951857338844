/** The limit that rejected a request. Set only where the upstream gives reasons or has several limits. */
export interface LimitAttribution {
  /** The name of a nested limit; empty for the upstream's own. */
  readonly limit?: string;
  readonly reason?: string;
}

/** Without a reason, the attribution has none. */
export function toAttribution({
  limit,
  reason,
}: {
  readonly limit: string;
  readonly reason: string | undefined;
}): LimitAttribution {
  return reason === undefined ? { limit } : { limit, reason };
}
