/** What requests have cost, where that is configured. */
export type CostEvent =
  /** A response named the cost of a request. `limit`: the nested limit; absent for that of the upstream. In units. */
  | {
      readonly type: 'cost-settled';
      readonly upstream: string;
      readonly route: string;
      readonly limit?: string;
      readonly charged: number;
      readonly actual: number;
    }
  /** The cost of a request should have been read from its response, and was not: its charge stands. */
  | { readonly type: 'cost-unread'; readonly upstream: string; readonly route: string; readonly reason: string };
