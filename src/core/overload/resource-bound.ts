/** A resource that grows with traffic, and its bound. Computed on a scrape; costs nothing in between. */
export interface ResourceBound {
  /** The `bound` label of `tidegate_bound_used_ratio`. */
  readonly name: ResourceBoundName;
  /** The use as a share of the bound; the bound acts at 1. */
  readonly used: number;
  /** How often the bound has acted: a refusal, a drop, an eviction or a wait. */
  readonly reached: number;
}

export type ResourceBoundName = (typeof RESOURCE_BOUND_NAMES)[number];

export const RESOURCE_BOUND_NAMES = [
  'connections',
  'requests',
  'queue',
  'upstream_connections',
  'replay_memory',
  'cost_memory',
  'clients',
  'client_limits',
  'client_quotas',
  'nested_limits',
  'addresses',
  'hashes',
  'verified_tokens',
  'polls_waiting',
  'polled_resources',
  'key_waits',
  'unsettled_keys',
  'settled_keys',
  'kept_responses',
  'deliveries',
  'delivery_bytes',
  'delivery_events',
  'admin_connections',
  'log_buffer',
  'stories',
  'event_loop',
  'heap',
] as const;
