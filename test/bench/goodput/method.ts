/** Parameters of every run. */
export const METHOD = {
  clients: 10,
  /** Offered ÷ capacity. */
  overload: 2,
  deadline: 10_000,
  /** Gives the mean within a third of a run's standard deviation. */
  simulations: 12,
} as const;
