/** Sums over service times that their likelihoods need. */
export interface ServiceSums {
  readonly count: number;
  readonly sum: number;
  /** Of the logarithms, and of their squares. */
  readonly logs: number;
  readonly logSquares: number;
}

/** The least relative deviation: a constant time is not infinitely likely. */
const LEAST_DEVIATION = 0.02;

/**
 * The log-likelihood of service times as log-normal or as gamma-distributed times, whichever fits: these include constant, exponential
 * and long-tailed ones. In nats, with the density in 1/ms.
 */
export function serviceLikelihood(sums: ServiceSums): number {
  return Math.max(logNormalLikelihood(sums), gammaLikelihood(sums));
}

function logNormalLikelihood({ count, logs, logSquares }: ServiceSums): number {
  const mean = logs / count;
  const variance = Math.max(0, logSquares / count - mean * mean);
  const deviation = Math.max(LEAST_DEVIATION, Math.sqrt(variance));
  const perTime = Math.log(deviation * Math.sqrt(2 * Math.PI)) + variance / (2 * deviation * deviation);
  return -count * perTime - logs;
}

/** The shape by the approximation in T. P. Minka, Estimating a Gamma distribution (2002). */
function gammaLikelihood({ count, sum, logs }: ServiceSums): number {
  const mean = sum / count;
  const gap = Math.max(1e-9, Math.log(mean) - logs / count);
  const estimate = (3 - gap + Math.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap);
  const shape = Math.min(1 / LEAST_DEVIATION ** 2, estimate);
  return count * (shape * Math.log(shape / mean) - logGamma(shape) + ((shape - 1) * logs) / count - shape);
}

/** Stirling's series, shifted to arguments above 7: Abramowitz and Stegun, 6.1.40. */
function logGamma(x: number): number {
  let [shifted, product] = [x, 1];
  for (; shifted < 7; shifted += 1) product *= shifted;
  const series = 1 / (12 * shifted) - 1 / (360 * shifted ** 3) + 1 / (1260 * shifted ** 5);
  return (shifted - 0.5) * Math.log(shifted) - shifted + 0.5 * Math.log(2 * Math.PI) + series - Math.log(product);
}
