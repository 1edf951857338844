import { drawChart } from '../../laboratory/chart/draw-chart.ts';
import { linearScale, logScale } from '../../laboratory/chart/chart-scale.ts';
import type { BackOffStrategy } from '../../core/backoff/strategies.ts';
import { strategies as definitions, isStrategyName } from '../../core/backoff/strategies.ts';
import { listRows } from './backoff-report.ts';
import { formatDelay } from '../format-delay.ts';

/** Draws the delays of strategies by attempt as SVG: means as lines, ranges as bands. */
export function drawBackoffs(strategies: readonly BackOffStrategy[], attempts: number | undefined): string {
  const shown = strategies.map((strategy) => ({ name: strategy.name, rows: listRows(strategy, attempts) }));
  const rows = shown.flatMap((each) => each.rows);
  const [only, ...others] = shown;
  const names = strategies.map(({ name }) => name).join(', ');
  const formula = only !== undefined && isStrategyName(only.name) ? definitions[only.name].formula : '';
  return drawChart({
    title: others.length === 0 ? `The waits of ${names}` : 'Waits side by side',
    note: others.length === 0 ? formula : 'line: the mean; shaded: the random range; the axis is logarithmic',
    x: {
      label: 'after attempt',
      scale: linearScale(
        rows.map(({ attempt }) => attempt),
        1,
      ),
      format: (value) => (Number.isInteger(value) ? String(value) : ''),
    },
    y: {
      label: 'wait',
      scale: logScale(
        rows.flatMap(({ mean, max }) => [mean, max]),
        Infinity,
      ),
      format: formatDelay,
    },
    lines: shown.map((each) => ({
      name: each.name,
      points: each.rows.map(({ attempt, mean }) => [attempt, mean]),
      band: each.rows.some(({ min, max }) => min < max)
        ? each.rows.map(({ attempt, min, max }) => [attempt, min, max])
        : undefined,
    })),
  });
}
