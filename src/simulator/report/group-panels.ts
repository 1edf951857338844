import type { Panel } from './draw-panels.ts';
import type { GroupReport, ReportSample } from './simulation-report.ts';

/** The number of colours that can be distinguished. */
const MAX_CURVES = 5;

/** Successes by group over time; empty for a single group. Groups beyond the fifth are drawn as one. */
export function groupPanels(groups: readonly Pick<GroupReport, 'name'>[]): Panel<ReportSample>[] {
  if (groups.length < 2) return [];
  const fitsAll = groups.length <= MAX_CURVES;
  const curves = groups.slice(0, fitsAll ? MAX_CURVES : MAX_CURVES - 1).map(({ name }, i) => ({
    name,
    look: `group-${i}`,
    shape: 'line' as const,
    of: ({ served }: ReportSample) => served[i] ?? 0,
  }));
  const rest = {
    name: `${groups.length - curves.length} more`,
    look: `group-${MAX_CURVES - 1}`,
    shape: 'line' as const,
    of: ({ served }: ReportSample) => served.slice(curves.length).reduce((sum, each) => sum + each, 0),
  };
  return [{ title: 'successes a second', height: 130, curves: fitsAll ? curves : [...curves, rest] }];
}
