export type LimitState = (typeof LIMIT_STATES)[number];
export const LIMIT_STATES = ['open', 'backoff', 'cooldown', 'restoring', 'blocked'] as const;

export type LimitScope = 'upstream' | 'client' | 'credential';

/** Why a rate was cut: the `cause` label of `tidegate_ratelimit_cuts_total`. */
export type CutCause = (typeof CUT_CAUSES)[number];
export const CUT_CAUSES = ['first', 'small', 'heavy', 'places', 'latency', 'blocked', 'errors'] as const;
