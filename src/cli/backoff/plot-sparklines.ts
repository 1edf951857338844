import type { Millis } from '../../core/scalars.ts';
import { formatDelay } from '../format-delay.ts';

const SPARK_BLOCKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const NO_DELAY = '·';
const GIVEN_UP = '  given up';

export interface DelaySeries {
  readonly name: string;
  readonly delays: readonly Millis[];
}

/**
 * One line per strategy and one column per delay. The height is logarithmic, so that growth by a constant factor has equal steps.
 * A shorter line means that the strategy has given up.
 * @param width columns of the terminal; if not all delays fit, every second, third … one is shown
 */
export function plotSparklines(series: readonly DelaySeries[], width: number): string[] {
  const label = Math.max(...series.map(({ name }) => name.length));
  const maxDelays = Math.max(...series.map(({ delays }) => delays.length));
  const stride = Math.ceil(maxDelays / Math.max(1, width - 2 - label - 2 - GIVEN_UP.length));
  const delays = series.flatMap((each) => each.delays).filter((delay) => delay > 0);
  const [low, high] = [Math.min(...delays), Math.max(...delays)];
  const height = (delay: Millis): string => {
    if (delay === 0) return NO_DELAY;
    const fraction = low === high ? 0 : Math.log(delay / low) / Math.log(high / low);
    return SPARK_BLOCKS[Math.round(fraction * (SPARK_BLOCKS.length - 1))] ?? NO_DELAY;
  };
  const scale =
    delays.length === 0 ? '' : ` on one logarithmic scale, from ${formatDelay(low)} to ${formatDelay(high)}`;
  return [
    `The same${scale}; ${NO_DELAY} is no wait${stride === 1 ? '' : `; every ${stride} attempts`}`,
    '',
    ...series.map((each) => {
      const shown = each.delays.filter((_, i) => i % stride === 0).map(height);
      return `  ${each.name.padEnd(label)}  ${shown.join('')}${each.delays.length < maxDelays ? GIVEN_UP : ''}`;
    }),
  ];
}
