import type { Panel } from './draw-panels.ts';
import type { GroupReport, Sample } from './simulation-report.ts';

/** As many as there are colours that can be told apart. */
const MOST = 5;

/** Who was served over time; nothing where there is one group only. Groups beyond the fifth are drawn as one. */
export function groupPanels(groups: readonly Pick<GroupReport, 'name'>[]): Panel<Sample>[] {
  if (groups.length < 2) return [];
  const isEach = groups.length <= MOST;
  const curves = groups.slice(0, isEach ? MOST : MOST - 1).map(({ name }, i) => ({
    name,
    look: `group-${i}`,
    shape: 'line' as const,
    of: ({ served }: Sample) => served[i] ?? 0,
  }));
  const rest = {
    name: `${groups.length - curves.length} more`,
    look: `group-${MOST - 1}`,
    shape: 'line' as const,
    of: ({ served }: Sample) => served.slice(curves.length).reduce((sum, each) => sum + each, 0),
  };
  return [{ title: 'successes a second', height: 130, curves: isEach ? curves : [...curves, rest] }];
}
