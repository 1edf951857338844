/** The processes of each topology, and the faults that can happen to them. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../../src/core/scalars.ts';
import { findFaketime } from '../setup/find-faketime.ts';
import { atEnd } from '../support/at-end.ts';
import { pickOf } from '../support/oracle/topology.ts';
import { startRedis } from '../support/redis/redis-server.ts';
import { startSentinel } from '../support/redis/redis-sentinel.ts';
import { startRelay } from '../support/relay/relay.ts';
import type { LogLine } from '../support/proxy/probed-process.ts';
import { fakeClock } from './fake-clock.ts';
import type { Fault } from './fault-injector.ts';
import type { FaultLog } from './fault-record.ts';
import { databaseDamaged, diskFull, logEndLost } from './faults/database-faults.ts';
import { clockSet, drained, killed, primaryKilled, reloaded, stopped, workerKilled } from './faults/process-faults.ts';
import { failover, redisClockSet, redisKilled, redisStopped, redisUnreachable } from './faults/redis-faults.ts';
import { GateProcess } from './gate-process.ts';
import type { TopologyName } from './options.ts';
import { mountOwnDisk } from '../support/own-disk.ts';
import { freePort } from '../support/free-port.ts';
import type { GateSettings } from './settings.ts';
import { drawSettings, FIRST_SETTINGS, yamlOf } from './settings.ts';

export interface Deployment {
  readonly gates: readonly GateProcess[];
  readonly faults: readonly Fault[];
  /** What cannot be injected on this machine. */
  readonly missing: readonly string[];
}

export interface DeploymentParts {
  readonly upstream: string;
  readonly log: FaultLog;
  readonly onLine: (line: LogLine) => void;
  readonly onUnexpectedEnd: (why: string) => void;
}

const SHORT_STOP = [500, 4000] as const;
/** Longer than a lease, which is 10 s. */
const LONG_STOP = [11_500, 13_500] as const;

/** Starts Tidegate as this topology has it. */
export function deploy(name: TopologyName, parts: DeploymentParts): Promise<Deployment> {
  switch (name) {
    case 'process-sqlite':
      return deployWithDatabase(1, parts);
    case 'process-sqlite-normal':
      return deployWithDatabase(1, parts, 'normal');
    case 'workers-sqlite':
      return deployWithDatabase(2, parts);
    case 'workers-memory':
      return deployWorkersInMemory(parts);
    case 'replicas-redis':
      return deployReplicas(1, parts);
    case 'replicas-redis-workers':
      return deployReplicas(2, parts);
    case 'replicas-sentinel':
      return deployBehindSentinel(parts);
    case 'replicas-local':
      return deployLocalReplicas(parts);
  }
}

/** One Tidegate, which has its configuration, but does not run yet. */
interface Prepared {
  readonly gate: GateProcess;
  readonly draw: (random: Random) => string;
  readonly setClock: ((seconds: number) => void) | undefined;
}

async function prepare(
  parts: DeploymentParts,
  workers: number,
  state: string,
  onStoreLost: GateSettings['onStoreLost'] = 'refuse',
): Promise<Prepared> {
  const folder = makeFolder();
  const settings: GateSettings = {
    ...{ listen: await freePort(), admin: await freePort(), workers, state, onStoreLost },
    upstream: parts.upstream,
  };
  const clock = fakeClock(join(folder, 'clock'));
  const gate = new GateProcess({
    ...parts,
    workers,
    configFile: join(folder, 'tidegate.yaml'),
    ports: settings,
    env: clock?.env ?? {},
  });
  gate.configure(yamlOf(settings, FIRST_SETTINGS));
  atEnd(() => gate.kill('all'));
  return { gate, draw: (random) => yamlOf(settings, drawSettings(random)), setClock: clock?.set };
}

async function deployWithDatabase(
  workers: number,
  parts: DeploymentParts,
  durability: 'full' | 'normal' = 'full',
): Promise<Deployment> {
  const folder = join(makeFolder(), 'disk');
  const hasOwnDisk = mountOwnDisk(folder);
  const file = join(folder, 'state.db');
  const prepared = await prepare(parts, workers, `state: {store: sqlite, file: ${file}, durability: ${durability}}`);
  const { gate } = prepared;
  await gate.start();
  const own = workers === 1 ? [killed('process killed', [gate])] : [workerKilled(gate), primaryKilled(gate)];
  const faults = [
    ...own,
    ...(workers === 1 ? [] : [stopped('worker stopped', parts.log, { pidOf: workerOf(gate), lasts: SHORT_STOP })]),
    stopped(`${workers === 1 ? 'process' : 'primary'} stopped`, parts.log, {
      pidOf: () => gate.pid,
      lasts: SHORT_STOP,
    }),
    ...(hasOwnDisk ? [diskFull(folder)] : []),
    databaseDamaged(gate, file),
    logEndLost(gate, file, parts.log),
    drained([gate]),
    ...common([prepared]),
  ];
  const missing = hasOwnDisk ? [] : ['disk full: this user may not mount a file system'];
  return { gates: [gate], faults, missing: [...missing, ...missingClock([prepared])] };
}

/** Its primary is never killed: that forgets all keys, as docs/idempotency.md says. */
async function deployWorkersInMemory(parts: DeploymentParts): Promise<Deployment> {
  const prepared = await prepare(parts, 2, '');
  const { gate } = prepared;
  await gate.start();
  const faults = [
    workerKilled(gate),
    stopped('worker stopped', parts.log, { pidOf: workerOf(gate), lasts: SHORT_STOP }),
    stopped('primary stopped', parts.log, { pidOf: () => gate.pid, lasts: SHORT_STOP }),
    ...common([prepared]),
  ];
  return { gates: [gate], faults, missing: missingClock([prepared]) };
}

const REPLICAS = 3;

/** The first replica reaches Redis through a relay. Each worker is a replica of its own. */
async function deployReplicas(workers: number, parts: DeploymentParts): Promise<Deployment> {
  const hasClock = findFaketime() !== undefined;
  // Only `always` keeps what Redis has acknowledged if it is killed while the disk is slow.
  const redis = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' }, clock: hasClock });
  const relay = await startRelay(redis.url.replace('redis:', 'http:'));
  atEnd(() => relay.close());
  const urls = [relay.url.replace('http:', 'redis:'), ...Array.from({ length: REPLICAS - 1 }, () => redis.url)];
  const prepared = await Promise.all(
    urls.map((url) => prepare(parts, workers, `state: {store: redis, url: "${url}", timeout: 240ms}`)),
  );
  const gates = prepared.map(({ gate }) => gate);
  await Promise.all(gates.map((gate) => gate.start()));
  const pidOf = (random: Random): number => {
    const gate = pickOf(gates, random);
    return workers === 1 ? gate.pid : pickOf(gate.workerPids, random);
  };
  const faults = [
    killed('replica killed', gates),
    ...(workers === 1 ? [] : gates.map(workerKilled)),
    stopped('replica stopped', parts.log, { pidOf, lasts: SHORT_STOP }),
    stopped('replica stopped past its lease', parts.log, { pidOf, lasts: LONG_STOP, isLong: true }),
    redisKilled(redis),
    redisStopped(redis),
    redisUnreachable('Redis unreachable for a replica', relay, SHORT_STOP),
    redisUnreachable('Redis unreachable past a lease', relay, LONG_STOP, true),
    ...(hasClock ? redisClockSet(redis) : []),
    drained(gates),
    ...common(prepared),
  ];
  return { gates, faults, missing: missingClock(prepared) };
}

/** Processes that Redis does not answer decide alone. None is stopped: what it sends late would count as another charge. */
async function deployLocalReplicas(parts: DeploymentParts): Promise<Deployment> {
  const redis = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } });
  const relay = await startRelay(redis.url.replace('redis:', 'http:'));
  atEnd(() => relay.close());
  const urls = [relay.url.replace('http:', 'redis:'), ...Array.from({ length: REPLICAS - 1 }, () => redis.url)];
  const prepared = await Promise.all(
    urls.map((url) => prepare(parts, 1, `state: {store: redis, url: "${url}", timeout: 240ms}`, 'local')),
  );
  const gates = prepared.map(({ gate }) => gate);
  await Promise.all(gates.map((gate) => gate.start()));
  const faults = [
    killed('replica killed', gates),
    redisKilled(redis),
    redisStopped(redis),
    redisUnreachable('Redis unreachable for a replica', relay, SHORT_STOP),
    redisUnreachable('Redis unreachable past a lease', relay, LONG_STOP, true),
    drained(gates),
    ...common(prepared),
  ];
  return { gates, faults, missing: missingClock(prepared) };
}

async function deployBehindSentinel(parts: DeploymentParts): Promise<Deployment> {
  const sentinel = await startSentinel();
  const state = `state: {store: redis, url: "${sentinel.url}", timeout: 240ms}`;
  const prepared = await Promise.all(Array.from({ length: REPLICAS }, () => prepare(parts, 1, state)));
  const gates = prepared.map(({ gate }) => gate);
  await Promise.all(gates.map((gate) => gate.start()));
  const faults = [failover(sentinel, parts.log), killed('replica killed', gates), ...common(prepared)];
  return { gates, faults, missing: missingClock(prepared) };
}

/** The faults of every topology. */
function common(prepared: readonly Prepared[]): Fault[] {
  const clocks = prepared.flatMap(({ setClock }) => setClock ?? []);
  return [
    reloaded(
      prepared.map(({ gate }) => gate),
      (place, random) => prepared[place]?.draw(random) ?? '',
    ),
    ...(clocks.length > 0 ? [clockSet(clocks)] : []),
  ];
}

function missingClock(prepared: readonly Prepared[]): string[] {
  return prepared.some(({ setClock }) => setClock === undefined) ? ['clock set: libfaketime is not installed'] : [];
}

function workerOf(gate: GateProcess): (random: Random) => number {
  return (random) => pickOf(gate.workerPids, random);
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-checker-'));
  mkdirSync(folder, { recursive: true });
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
