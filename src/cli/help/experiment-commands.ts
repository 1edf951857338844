import type { CommandDescription } from './command-description.ts';
import { FILE, option, valued, words } from './command-description.ts';

const STRATEGY = { kind: 'strategy' } as const;

/** Of a backoff strategy. */
const STRATEGY_OPTIONS = [
  valued('base', 'DURATION', 'first delay, or the unit from which delays grow'),
  valued('multiplier', 'N', 'factor from each delay to the next'),
  valued('max', 'DURATION', 'maximum delay'),
  valued('jitter', 'N | DURATION', 'share from 0 to 1, or the maximum that additive-jitter adds'),
  valued('exponent', 'N', 'exponent of polynomial'),
  valued('table', 'N,N,…', 'number of slots to choose from, for each retry'),
  valued('slot', 'DURATION', 'length of a slot, for ethernet and table'),
];

export const BACKOFF: CommandDescription = {
  operand: 'NAME',
  summary: 'show the delays of a backoff strategy, or compare several; without a NAME, list them',
  usage: ['backoff [NAME...] [OPTIONS]'],
  first: STRATEGY,
  others: STRATEGY,
  options: [
    ...STRATEGY_OPTIONS,
    valued('attempts', 'N', 'number of delays to show'),
    option('json', 'print rows as JSON, in milliseconds; several strategies by name'),
    valued('svg', 'FILE', 'draw the delays into a file', FILE),
  ],
  notes: [
    'Options that are not given have the defaults of the strategy. Several names are compared side by side. Without a name, lists the strategies. docs/backoff.md says when to use which.',
  ],
};

export const LAB: CommandDescription = {
  operand: 'STUDY',
  summary: 'run experiments on backoff: contention, aloha, ethernet, thundering-herd, fit',
  usage: [
    'lab contention [STRATEGY...] [--n N,N,…] [--trials N]',
    'lab aloha [--slots N]',
    'lab aloha --n USERS --load LOAD --k K',
    'lab aloha [STRATEGY...] --n USERS --load LOAD [--table N,N,…] [--slots N]',
    'lab ethernet [--n N,N,…] [--frame BYTES] [--load PART] [--seconds N]',
    'lab thundering-herd [STRATEGY...] [--n N] [--limit RATE] [--burst N] [--trials N]',
    'lab fit LOG [SCENARIO...] [--limit RATE] [--burst N]',
  ],
  first: words('contention', 'aloha', 'ethernet', 'thundering-herd', 'fit'),
  others: FILE,
  options: [
    valued('n', 'N,N,…', 'number of clients, users or stations; several for contention and ethernet'),
    valued('trials', 'N', 'number of runs, for contention and thundering-herd'),
    valued('slots', 'N', 'number of slots to simulate, for aloha'),
    valued('load', 'LOAD', 'packets for each slot, for aloha; offered share of what the cable carries, for ethernet'),
    valued('k', 'K', "number of slots to choose from, for Lam's Markov chain"),
    valued('frame', 'BYTES', 'length of a frame, for ethernet'),
    valued('seconds', 'N', 'time to simulate, for ethernet'),
    valued('limit', 'RATE', 'rate of the token bucket, for thundering-herd and fit'),
    valued('burst', 'N', 'burst of the token bucket, for thundering-herd and fit'),
    ...STRATEGY_OPTIONS,
    valued('seed', 'N', 'seed of the random numbers: a whole number from 0; default: 1'),
    option('json', 'print one JSON object'),
    valued('svg', 'FILE', 'draw the result into a file', FILE),
  ],
  notes: [
    "contention: clients update one row; calls and time by strategy. aloha: throughput of random access to a channel; with --k, Lam's Markov chain of a slotted channel; with --n and --load, a simulation of that channel with strategies, where a delay of 1ms is one slot. ethernet: stations on a segment with truncated binary backoff. thundering-herd: refused clients return, by Retry-After and by strategy. fit: learns the limit from a log (token bucket, window, requests in flight, or a queue) and replays its traffic with several policies, including that of each SCENARIO. The log is of Tidegate, nginx, Envoy, Caddy or ALB, or CSV with time, client, status, and optionally method, path and ms; sorted by time.",
    'Strategies take --base and the options after it, as tidegate backoff does. Equal seeds give equal results. Ctrl-C prints the results so far. See docs/backoff.md.',
  ],
};

export const SIMULATE: CommandDescription = {
  operand: 'NAME',
  summary: 'run a scenario in virtual time, with the code of the proxy',
  usage: ['simulate FILE|NAME [OPTIONS]', 'simulate --list'],
  first: { kind: 'scenario' },
  options: [
    option('list', 'list the bundled scenarios'),
    valued('seed', 'N', 'seed of the random numbers: a whole number from 0; default: that of the scenario'),
    option('json', 'print the report as one JSON object; a rate without a limit is null'),
    valued('svg', 'FILE', 'draw rate, queue and waste over time into a file', FILE),
    option('check', 'exit with 1 if a goal of the scenario is missed'),
  ],
  notes: [
    'Runs a scenario in virtual time, with the exchange, the gate and the queues of the proxy and a model of an upstream. Equal files and seeds give equal reports. docs/simulator.md describes the scenario format.',
  ],
};
