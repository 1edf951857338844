import type { Equilibrium } from '../aloha/equilibria.ts';
import { findEquilibria, largestStableUsers, smallestStableSpread, throughputAt } from '../aloha/equilibria.ts';
import type { AlohaChannel, StationaryState } from '../aloha/lam-chain.ts';
import { slotProbabilities, solveLamChain } from '../aloha/lam-chain.ts';
import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import { joinLines, formatTable, pluralize } from './text-table.ts';
import type { StudyReport } from './study-report.ts';

/** `tidegate lab aloha --n --k --load`: Lam's chain, which is computed and not simulated. */
export function studyLamChain(channel: AlohaChannel): StudyReport {
  const stationary = solveLamChain(channel);
  const equilibria = findEquilibria(channel);
  const bounds = { largestN: largestStableUsers(channel.spread), smallestK: smallestStableSpread(channel) ?? null };
  const { throughput, backlog, delay } = stationary;
  // The delay of a collapsed channel may exceed a double.
  const json = { throughput, backlog, delay: Number.isFinite(delay) ? delay : null, equilibria, ...bounds };
  return {
    text: formatChain(channel, stationary, equilibria, bounds),
    json,
    draw: () => drawChain(channel, equilibria),
  };
}

interface Bounds {
  /** The most users that this K keeps stable at every load. */
  readonly largestN: number;
  /** The smallest K that keeps these users stable at this load; null if none does. */
  readonly smallestK: number | null;
}

/** Longer delays are reported as a collapsed channel. */
const COLLAPSED_DELAY = 1e9;

function formatChain(
  channel: AlohaChannel,
  { throughput, backlog, delay }: StationaryState,
  equilibria: readonly Equilibrium[],
  { largestN, smallestK }: Bounds,
): string {
  const { users, spread, load } = channel;
  return joinLines([
    `${pluralize(users, 'user')} of a slotted channel that offer ${load} packets a slot; after a collision, a user retries within ${pluralize(spread, 'slot')}.`,
    '',
    `  throughput  S = ${throughput.toFixed(5)} packets a slot`,
    `  backlog         ${backlog.toFixed(3)} users with a collided packet`,
    `  delay       D = ${delay < COLLAPSED_DELAY ? `${delay.toFixed(2)} slots` : 'unbounded: the channel has collapsed'}`,
    '',
    ...formatTable(
      ['equilibrium', 'backlog', 'S at it'],
      equilibria.map((each) => [
        each.stable ? 'stable' : 'unstable',
        each.backlog.toFixed(2),
        each.throughput.toFixed(5),
      ]),
    ),
    '',
    describeStability(equilibria, channel),
    `K = ${spread} is enough for ${pluralize(largestN, 'user')} at every load.`,
    smallestK === null
      ? `No K keeps ${pluralize(users, 'user')} stable at load ${load}: it exceeds the capacity of the channel.`
      : `${pluralize(users, 'user')} at load ${load} ${users === 1 ? 'needs' : 'need'} K = ${smallestK} at least.`,
  ]);
}

function describeStability(equilibria: readonly Equilibrium[], { users, load }: AlohaChannel): string {
  const [only, ...others] = equilibria.filter((each) => each.stable);
  if (others.length > 0) {
    return 'Two stable points: sooner or later the channel drifts from the good one to the bad one.';
  }
  if (only === undefined || only.backlog < users / 2) {
    return 'One stable point: the channel returns to it from any backlog.';
  }
  return only.throughput < load / 4 && only.throughput < COLLAPSED_THROUGHPUT
    ? 'One stable point, with almost no throughput: the channel has collapsed.'
    : 'One stable point, at which most users wait: the offered load exceeds the throughput.';
}

/** Packets a slot: a collapsed channel carries less. */
const COLLAPSED_THROUGHPUT = 0.05;

const CURVE_POINTS = 300;

function drawChain(channel: AlohaChannel, equilibria: readonly Equilibrium[]): string {
  const { users, spread, load } = channel;
  const chances = slotProbabilities(channel);
  const backlogs = Array.from({ length: CURVE_POINTS + 1 }, (_, i) => (i * users) / CURVE_POINTS);
  const through = backlogs.map((n) => [n, throughputAt(n, users, chances)] as const);
  const offered = backlogs.map((n) => [n, (users - n) * chances.arrival] as const);
  const points = equilibria.map(({ backlog, stable }) => `${stable ? 'stable' : 'unstable'} at ${backlog.toFixed(1)}`);
  return drawChart({
    title: `Offered load and throughput: N = ${users}, K = ${spread}, load ${load}`,
    note: `the backlog is constant where the curves meet: ${points.join(', ')}`,
    x: { label: 'backlog', scale: linearScale([users], 0), format: String },
    y: {
      label: 'packets a slot',
      scale: linearScale([...through, ...offered].map(([, s]) => s)),
      format: (s) => String(Number(s.toFixed(3))),
    },
    lines: [
      { name: 'throughput', points: through },
      { name: 'offered', points: offered },
    ],
  });
}
