import type { Equilibrium } from '../aloha/equilibria.ts';
import { findEquilibria, largestStableUsers, smallestStableSpread, throughputAt } from '../aloha/equilibria.ts';
import type { AlohaChannel, Stationary } from '../aloha/lam-chain.ts';
import { chancesOf, solveLamChain } from '../aloha/lam-chain.ts';
import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import { joinLines, layTable, plural } from './text-table.ts';
import type { Told } from './study-report.ts';

/** `tidegate lab aloha --n --k --load`: Lam's chain, which is computed and not simulated. */
export function studyChain(channel: AlohaChannel): Told {
  const stationary = solveLamChain(channel);
  const equilibria = findEquilibria(channel);
  const bounds = { largestN: largestStableUsers(channel.spread), smallestK: smallestStableSpread(channel) ?? null };
  const { throughput, backlog, delay } = stationary;
  // A channel that has collapsed takes longer than a number can tell.
  const json = { throughput, backlog, delay: Number.isFinite(delay) ? delay : null, equilibria, ...bounds };
  return { text: tell(channel, stationary, equilibria, bounds), json, draw: () => draw(channel, equilibria) };
}

interface Bounds {
  /** Users for whom this K is enough at every load. */
  readonly largestN: number;
  /** That is enough for these users at this load; null where none is. */
  readonly smallestK: number | null;
}

/** Delays beyond this are told as what they are: the channel has collapsed. */
const FOREVER = 1e9;

function tell(
  channel: AlohaChannel,
  { throughput, backlog, delay }: Stationary,
  equilibria: readonly Equilibrium[],
  { largestN, smallestK }: Bounds,
): string {
  const { users, spread, load } = channel;
  return joinLines([
    `${plural(users, 'user')} of a slotted channel who would send ${load} packets a slot; who has collided tries again within ${plural(spread, 'slot')}.`,
    '',
    `  throughput  S = ${throughput.toFixed(5)} packets a slot`,
    `  backlog         ${backlog.toFixed(3)} users who have collided`,
    `  delay       D = ${delay < FOREVER ? `${delay.toFixed(2)} slots` : 'without end: the channel has collapsed'}`,
    '',
    ...layTable(
      ['equilibrium', 'backlog', 'S there'],
      equilibria.map((each) => [
        each.stable ? 'stable' : 'unstable',
        each.backlog.toFixed(2),
        each.throughput.toFixed(5),
      ]),
    ),
    '',
    tellStability(equilibria, channel),
    `K = ${spread} is enough for ${plural(largestN, 'user')} at every load.`,
    smallestK === null
      ? `No K keeps ${plural(users, 'user')} stable at load ${load}: that is more than a channel carries.`
      : `${plural(users, 'user')} at load ${load} ${users === 1 ? 'needs' : 'need'} K = ${smallestK} at least.`,
  ]);
}

function tellStability(equilibria: readonly Equilibrium[], { users, load }: AlohaChannel): string {
  const [only, ...others] = equilibria.filter((each) => each.stable);
  if (others.length > 0) return 'Two stable points: sooner or later chance takes it from the good one to the other.';
  if (only === undefined || only.backlog < users / 2) {
    return 'One stable point: the channel comes back to it from anywhere.';
  }
  return only.throughput < load / 4 && only.throughput < SCANT
    ? 'One stable point, and there next to nothing comes through: the channel has collapsed.'
    : 'One stable point, where most users wait: more is sent than comes through.';
}

/** Packets a slot: what a collapsed channel carries is below that. */
const SCANT = 0.05;

const POINTS = 300;

function draw(channel: AlohaChannel, equilibria: readonly Equilibrium[]): string {
  const { users, spread, load } = channel;
  const chances = chancesOf(channel);
  const backlogs = Array.from({ length: POINTS + 1 }, (_, i) => (i * users) / POINTS);
  const through = backlogs.map((n) => [n, throughputAt(n, users, chances)] as const);
  const offered = backlogs.map((n) => [n, (users - n) * chances.arrival] as const);
  const points = equilibria.map(({ backlog, stable }) => `${stable ? 'stable' : 'unstable'} at ${backlog.toFixed(1)}`);
  return drawChart({
    title: `What comes in and what comes through: N = ${users}, K = ${spread}, load ${load}`,
    note: `where the curves meet, the backlog stays as it is: ${points.join(', ')}`,
    x: { label: 'backlog', scale: linearScale([users], 0), format: String },
    y: {
      label: 'packets a slot',
      scale: linearScale([...through, ...offered].map(([, s]) => s)),
      format: (s) => String(Number(s.toFixed(3))),
    },
    lines: [
      { name: 'comes through', points: through },
      { name: 'comes in', points: offered },
    ],
  });
}
