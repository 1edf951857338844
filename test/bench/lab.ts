/**
 * CPU seconds of the laboratory's experiments: ten million ALOHA slots, a million attempts of contending clients, an hour
 * of an Ethernet segment, and thundering herds.
 *
 *     npm run bench:lab                 full size, with goals
 *     npm run bench:lab -- --smoke      a tenth of it
 */
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { compareChannels } from '../../src/laboratory/aloha/compare-channels.ts';
import { retransmitByStrategy, retransmitByTable, RCP } from '../../src/laboratory/aloha/retransmission.ts';
import { simulateThroughput } from '../../src/laboratory/aloha/aloha-throughput.ts';
import { compareContention } from '../../src/laboratory/contention/compare-contention.ts';
import { compareSegments } from '../../src/laboratory/ethernet/compare-segments.ts';
import { SLOT_BITS } from '../../src/laboratory/ethernet/ethernet-segment.ts';
import { runToCompletion } from '../../src/laboratory/experiment.ts';
import { compareHerds } from '../../src/laboratory/herd/compare-herds.ts';
import { HINT_POLICIES } from '../../src/laboratory/herd/hint-policy.ts';
import { makeBackOff } from '../../src/core/backoff/strategies.ts';
import { toText } from './control/table.ts';

const { smoke } = parseArgs({ options: { smoke: { type: 'boolean', default: false } } }).values;
const PART = smoke ? 0.1 : 1;
const SLOTS = 1e7 * PART;
const ATTEMPTS = 1e6 * PART;
const GOAL = 10 * PART;

const full = makeBackOff({ strategy: 'full-jitter' });
const trials = Math.ceil(ATTEMPTS / 796);
const channel = { users: 400, load: 0.34, slots: SLOTS, seed: 1 };
const essay = makeBackOff({ strategy: 'full-jitter', baseInterval: 10, maxInterval: 2000 });

const studies: readonly { readonly what: string; readonly goal: boolean; readonly run: () => string }[] = [
  {
    what: 'throughput of ALOHA, pure and slotted',
    goal: true,
    run: () =>
      `${runToCompletion(simulateThroughput({ attempts: [1], slots: SLOTS, seed: 1 }))[0]?.slottedSimulated.toFixed(4)}`,
  },
  {
    what: "a channel of 400 users, Lam's table",
    goal: true,
    run: () =>
      `S ${runToCompletion(compareChannels({ ...channel, retransmissions: [retransmitByTable(RCP)] }))[0]?.throughput.toFixed(4)}`,
  },
  {
    what: 'a channel of 400 users, full-jitter',
    goal: true,
    run: () =>
      `S ${runToCompletion(compareChannels({ ...channel, retransmissions: [retransmitByStrategy(full)] }))[0]?.throughput.toFixed(4)}`,
  },
  {
    what: '100 contending clients, full-jitter',
    goal: true,
    run: () => {
      const [row] = runToCompletion(
        compareContention({ sizes: [100], clientStrategies: [{ name: 'full', backOff: essay }], trials, seed: 1 }),
      );
      return `${Math.round((row?.calls ?? 0) * trials)} attempts`;
    },
  },
  {
    what: 'a segment of 100 stations',
    goal: false,
    run: () => {
      const backOff = makeBackOff({ strategy: 'ethernet', slot: SLOT_BITS });
      const settings = { stations: [100], frame: 1518 * 8, load: Number.POSITIVE_INFINITY, backOff, seed: 1 };
      const [row] = runToCompletion(compareSegments({ ...settings, time: 60_000 * PART }));
      return `${((row?.time ?? 0) / 1000).toFixed(0)} s of it`;
    },
  },
  {
    what: 'herds of 1000, full-jitter, six hint policies',
    goal: false,
    run: () => {
      const contestants = [{ name: 'full-jitter', backOff: full }];
      const world = { clients: 1000, rate: 100, burst: 10, trials: Math.ceil(20 * PART), seed: 1 };
      return `${runToCompletion(compareHerds({ ...world, hints: HINT_POLICIES, clientStrategies: contestants })).length} rows`;
    },
  },
];

const measured = studies.map(({ what, goal, run }) => {
  // CPU time of this thread, independent of other load.
  const started = process.threadCpuUsage();
  const came = run();
  const { user, system } = process.threadCpuUsage(started);
  return { what, goal, came, seconds: (user + system) / 1e6 };
});

const rows = measured.map(({ what, came, seconds }) => [what, came, `${seconds.toFixed(2)} s`]);
console.log(toText({ title: 'The laboratory', head: ['study', 'came to', 'core'], rows }));
console.log(
  `\nNode ${process.version}, one core of ${availableParallelism()} × ${cpus()[0]?.model ?? 'an unknown processor'}.\n`,
);
for (const { what, goal, seconds } of measured) {
  if (!goal) continue;
  console.log(`${seconds <= GOAL ? 'met' : 'MISSED'}: ${what} in at most ${GOAL} s`);
  if (seconds > GOAL) process.exitCode = 1;
}
