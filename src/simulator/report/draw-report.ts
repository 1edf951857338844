import type { Millis } from '../../core/scalars.ts';
import type { Panel } from './draw-panels.ts';
import { drawPanels } from './draw-panels.ts';
import { groupPanels } from './group-panels.ts';
import type { SimulationReport, ReportSample } from './simulation-report.ts';

const PANELS: readonly Panel<ReportSample>[] = [
  {
    title: 'requests a second',
    height: 220,
    curves: [
      { name: 'accepted by the upstream', look: 'accepted', shape: 'area', of: ({ accepted }) => accepted },
      { name: 'limit of the upstream', look: 'limit', shape: 'steps', of: ({ limit }) => limit },
      { name: 'rate of the proxy', look: 'rate', shape: 'line', of: ({ rate }) => rate },
    ],
  },
  {
    title: 'requests waiting',
    height: 90,
    curves: [{ name: 'queue', look: 'queue', shape: 'area', of: ({ queued }) => queued }],
  },
  {
    title: 'wasted attempts a second',
    height: 90,
    curves: [{ name: 'answered 429 or 5xx', look: 'waste', shape: 'area', of: ({ wasted }) => wasted }],
  },
];

/** Draws a report as a standalone SVG: the rate against the limit, the queue, the waste, and successes by group over time. */
export function drawReport(title: string, report: SimulationReport, warmup: Millis): string {
  const { series, seed, goodput, waste, latency, groups } = report;
  const figures = `goodput ${goodput.toFixed(3)} · waste ${waste.toFixed(4)} · added p99 ${Math.round(latency.p99)} ms · seed ${seed}`;
  return drawPanels({ title, figures, panels: [...PANELS, ...groupPanels(groups)], series, warmup });
}
