import type { Millis } from '../../src/core/scalars.ts';
import { endAll } from '../support/at-end.ts';
import { CheckedClients } from './clients.ts';
import { deploy } from './deployment.ts';
import { findLeft, openFiles } from './end-state.ts';
import { FaultInjector } from './fault-injector.ts';
import { FaultLog } from './fault-record.ts';
import { LocalDecisions } from './local-decisions.ts';
import type { CheckerOptions, TopologyName } from './options.ts';
import { ProgressWatch } from './progress-watch.ts';
import { ProxyLog } from './proxy-log.ts';
import { UPSTREAM } from './settings.ts';

const PAUSE: Millis = 2000;
/** The longest time for which a replica is cut off from Redis, and a little. */
const PAST_ANY_LEASE: Millis = 16_000;
const PROGRESS_EVERY: Millis = 30_000;
const WATCH_EVERY: Millis = 250;
const SMOKE_PAUSE: Millis = 400;
const SMOKE_FAULTS = 4;

export interface TopologyResult {
  readonly lines: readonly string[];
  readonly violations: readonly string[];
}

/** Runs clients and faults at one topology, and judges what happened. */
export async function checkTopology(name: TopologyName, options: CheckerOptions): Promise<TopologyResult> {
  const started = performance.now();
  const faults = new FaultLog();
  const log = new ProxyLog();
  const ended: string[] = [];
  const isShared = name.startsWith('replicas');
  const isLocal = name === 'replicas-local';
  let urlOf = (_place: number): string => '';
  let startsOf = (_place: number): number => 0;
  const clients = new CheckedClients({
    upstreamTopology: UPSTREAM,
    ...options,
    places: isShared ? 3 : 1,
    urlOf: (place) => urlOf(place),
    startsOf: (place) => startsOf(place),
    isLocal,
    faults,
    log,
    checksCertainty: !isShared,
    storedWithin: isShared ? PAST_ANY_LEASE : 1000,
  });
  try {
    const [upstream = ''] = await clients.listen();
    const deployment = await deploy(name, {
      upstream,
      log: faults,
      onLine: (line) => log.onLine(line),
      onUnexpectedEnd: (why) => void ended.push(why),
    });
    const { gates } = deployment;
    urlOf = (place) => gates[place]?.url ?? '';
    startsOf = (place) => gates[place]?.starts ?? 0;
    const decisions = isLocal ? new LocalDecisions(gates, faults) : undefined;
    const files = Math.max(...gates.flatMap(({ pids }) => pids.map(openFiles)));
    const kinds = deployment.faults.filter(({ isLong = false }) => !(options.isSmoke && isLong));
    const [pause, least] = options.isSmoke ? [SMOKE_PAUSE, SMOKE_FAULTS] : [PAUSE, kinds.length];
    const injector = new FaultInjector(kinds, faults, options.seed + 2, pause, least);
    injector.start();
    const progress = setInterval(() => {
      const { intents, requests, charges } = clients.totals;
      const at = ((performance.now() - started) / 1000).toFixed(0);
      const last = faults.records.at(-1)?.name ?? 'no fault yet';
      console.log(`  ${at} s: ${intents} intents, ${requests} requests, ${charges} charges; ${last}`);
    }, PROGRESS_EVERY);
    const watch = new ProgressWatch(performance.now());
    const watching = setInterval(() => {
      watch.observe(clients.totals.charges, faults.isInProgress, performance.now());
    }, WATCH_EVERY);
    await clients.run((intents) => intents >= options.intents && injector.hasInjectedEnough);
    await injector.stop();
    clearInterval(progress);
    clearInterval(watching);
    const left = await findLeft(deployment, files, () => clients.closeUpstreamConnections());
    await decisions?.stop();
    clients.finish();
    return {
      lines: [
        ...summary(clients, faults, isLocal),
        ...deployment.missing.map((each) => `not injected: ${each}`),
        `at the end: ${left.summary}; ${((performance.now() - started) / 1000).toFixed(0)} s`,
      ],
      violations: [
        ...[...clients.violations, ...injector.violations, ...ended],
        ...[...log.problems, ...watch.violations, ...left.violations],
      ],
    };
  } finally {
    await endAll();
  }
}

function summary(clients: CheckedClients, faults: FaultLog, isLocal: boolean): string[] {
  const { intents, requests, charges, withinLost } = clients.totals;
  const { fault, lost, local, late } = clients.wrong;
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
  return [
    `${intents} intents, ${requests} requests, ${charges} charges`,
    `reports: ${list(clients.counts)}`,
    `faults: ${list(faults.counts())}`,
    `double charges: ${fault.double}; contradictions: ${fault.other}`,
    ...(faults.lostParts.length > 0
      ? [
          `lost by the store, in ${faults.lostParts.length} parts: ${withinLost} intents were in progress; of these ${lost.double} double charges, ${lost.other} contradictions`,
        ]
      : []),
    ...(isLocal ? [`decided locally: ${local.double} double charges, ${local.other} contradictions`] : []),
    ...(faults.stops.length > 0
      ? [`sent directly after ${faults.stops.length} stops: ${late.double} double charges`]
      : []),
  ];
}
