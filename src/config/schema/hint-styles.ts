/** What an upstream reports about its limit: nothing, the wait on a 429 (seconds or a date), or its quota on every response. */
export const HINT_STYLES = ['none', 'retry-after', 'retry-after-date', 'ratelimit', 'x-ratelimit'] as const;

export type HintStyle = (typeof HINT_STYLES)[number];
