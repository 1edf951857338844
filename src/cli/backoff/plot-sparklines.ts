import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { formatDelay } from '../format-delay.ts';

const HEIGHTS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NONE = '·';
const GIVEN_UP = '  given up';

export interface Series {
  readonly name: string;
  readonly delays: readonly Millis[];
}

/**
 * A line for each, a column for each delay: its height is its logarithm, so that what grows by a factor rises in steps of the same
 * height. One shorter than the others has given up.
 * @param width columns of the terminal: where all do not fit, every second is shown, or every third …
 */
export function plotHeights(series: readonly Series[], width: number): string[] {
  const label = Math.max(...series.map(({ name }) => name.length));
  const most = Math.max(...series.map(({ delays }) => delays.length));
  const stride = Math.ceil(most / Math.max(1, width - 2 - label - 2 - GIVEN_UP.length));
  const delays = series.flatMap((each) => each.delays).filter((delay) => delay > 0);
  const [low, high] = [Math.min(...delays), Math.max(...delays)];
  const height = (delay: Millis): string => {
    if (delay === 0) return NONE;
    const part = low === high ? 0 : Math.log(delay / low) / Math.log(high / low);
    return HEIGHTS[Math.round(part * (HEIGHTS.length - 1))] ?? NONE;
  };
  const scale =
    delays.length === 0 ? '' : ` on one logarithmic scale, from ${formatDelay(low)} to ${formatDelay(high)}`;
  return [
    `The same${scale}; ${NONE} is no wait${stride === 1 ? '' : `; every ${stride} attempts`}`,
    '',
    ...series.map((each) => {
      const shown = each.delays.filter((_, i) => i % stride === 0).map(height);
      return `  ${each.name.padEnd(label)}  ${shown.join('')}${each.delays.length < most ? GIVEN_UP : ''}`;
    }),
  ];
}
