/** Something that grows with traffic, and how far it may. Read when somebody scrapes; costs nothing between. */
export interface Bound {
  /** The `bound` label of `tidegate_bound_used_ratio`. */
  readonly name: BoundName;
  /** What is in use, as a share of the bound; at 1 it acts. */
  readonly used: number;
  /** How often it has acted: refused, dropped, forgotten, made somebody wait. */
  readonly reached: number;
}

export type BoundName = (typeof BOUND_NAMES)[number];

export const BOUND_NAMES = [
  'connections',
  'requests',
  'queue',
  'upstream_connections',
  'replay_memory',
  'clients',
  'client_limits',
  'nested_limits',
  'addresses',
  'hashes',
  'polls_waiting',
  'polled_resources',
  'key_waits',
  'unsettled_keys',
  'settled_keys',
  'admin_connections',
  'log_buffer',
  'stories',
  'event_loop',
  'heap',
] as const;
