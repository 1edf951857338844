import { randomBytes } from 'node:crypto';
import { StdoutDestination } from '../telemetry/log/stdout-destination.ts';
import { logDestination } from '../telemetry/log/log-destination.ts';
import { createLogger } from '../telemetry/log/logger.ts';
import type { App, AppParts } from '../app.ts';
import { startApp } from '../app.ts';
import { formatMistakes } from '../config/load/mistakes.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { ServeFlags } from '../config/load/serve-settings.ts';
import { formatListenAddress } from '../config/values/listen-address.ts';
import { resolveServeSettings } from '../config/load/serve-settings.ts';
import type { LimitView } from '../core/events/gate-views.ts';
import type { PracticeServer } from '../simulator/practice/practice-server.ts';
import type { TrafficGenerator } from '../simulator/practice/traffic-generator.ts';
import { startTraffic } from '../simulator/practice/traffic-generator.ts';
import { describeStartError, findOccupiedAddresses, isAddressInUse } from './describe-start-error.ts';

const LIMIT = 50;

/** A practice upstream with an undisclosed limit of 50 requests per second, and three clients that send more. */
const CONFIG = `
clients: {key: [header:x-api-key]}
drain: {delay: 0, timeout: 2s}
upstreams: {practice: {url: practice}}
practice: {limit: {kind: token-bucket, rate: ${LIMIT}/s, burst: 10}, latency: 30ms}
log: {level: warn}
`;

const CLIENTS = [
  { name: 'shop', rate: 20, honoursRetryAfter: true },
  { name: 'app', rate: 20, honoursRetryAfter: true },
  { name: 'batch', rate: 60 },
];

export type Demo =
  | { readonly kind: 'running'; readonly app: App; readonly token: string; readonly stop: () => Promise<void> }
  | { readonly kind: 'failed'; readonly message: string };

/** Runs practice upstream, proxy and traffic in one process, and prints a line of figures each second. */
export async function startDemo(flags: ServeFlags, version: string, print: (line: string) => void): Promise<Demo> {
  const token = randomBytes(12).toString('hex');
  const config = resolveDemoConfig(flags, token);
  if (typeof config === 'string') return { kind: 'failed', message: config };
  const logOutput = new StdoutDestination(config.log.buffer);
  const logger = createLogger({ level: 'warn', destination: logDestination(logOutput, 'auto', process.env) });
  let app: App;
  try {
    app = await startOnFreePorts(flags, config, token, { logger, logOutput, version }, print);
  } catch (error) {
    return { kind: 'failed', message: await describeStartError(error, config, process.env) };
  }
  const { practice } = app;
  if (practice === undefined) throw new Error('the demo runs its own upstream');
  const traffic = startTraffic({ target: app.url, clients: CLIENTS });

  print(`Tidegate ${version} on ${app.url}, live page on ${app.adminUrl ?? '(off)'}`);
  print(`The practice upstream has an undisclosed limit of ${LIMIT} requests per second. Three clients send 100.`);
  print(`The live page asks for a token before it pins, blocks or drains: ${token}`);
  print('A response counts in the second in which it ends: its request may have been offered in an earlier one.');
  print('Ctrl-C stops the demo.');
  print('');
  print(HEADING);
  const timer = setInterval(makeReporter(app, practice, traffic, print), 1000);
  return {
    kind: 'running',
    app,
    token,
    stop: async () => {
      clearInterval(timer);
      await traffic.stop();
      await app.drain();
      print('stopped');
    },
  };
}

/** Returns the mistakes in the flags as a text. */
function resolveDemoConfig(flags: ServeFlags, token: string): Config | string {
  const text = `${CONFIG}admin: {listen: "127.0.0.1:9901", token: ${token}}\n`;
  const settings = resolveServeSettings({ ...flags, config: 'demo' }, { env: {}, readFile: () => text });
  if (settings.kind === 'nothing') throw new Error('the demo has a config of its own');
  return settings.kind === 'mistakes' ? formatMistakes(settings.mistakes) : settings.config;
}

/** The demo may run beside a Tidegate with the default ports: it replaces each that is in use, unless a flag sets it. */
async function startOnFreePorts(
  flags: ServeFlags,
  config: Config,
  token: string,
  parts: AppParts,
  print: (line: string) => void,
): Promise<App> {
  try {
    return await startApp(config, parts);
  } catch (error) {
    if (!isAddressInUse(error)) throw error;
    const occupied = await findOccupiedAddresses(config);
    const isFlag = occupied.some(({ setting }) => setting === 'telemetry' || flags[setting] !== undefined);
    const anyPorts = Object.fromEntries(occupied.map(({ setting }) => [setting, ANY_PORT]));
    const free = resolveDemoConfig({ ...flags, ...anyPorts }, token);
    if (isFlag || typeof free === 'string') throw error;
    const app = await startApp(free, parts);
    const inUse = occupied.map(({ address }) => formatListenAddress(address)).join(' and ');
    const instead = occupied.map(({ setting }) => (setting === 'listen' ? app.url : app.adminUrl)).join(' and ');
    if (occupied.length > 0) print(`${inUse} ${occupied.length === 1 ? 'is' : 'are'} in use: using ${instead}`);
    return app;
  }
}

const ANY_PORT = '127.0.0.1:0';

const HEADING = '   time   offered  answered 200        refused   upstream 429s   learned rate   state';

/** Returns a function that prints the figures since its last call. */
function makeReporter(
  app: App,
  practice: PracticeServer,
  traffic: TrafficGenerator,
  print: (line: string) => void,
): () => void {
  let before = readTotals(practice, traffic);
  let seconds = 0;
  return () => {
    const now = readTotals(practice, traffic);
    const limit = app.view().limits[0];
    seconds += 1;
    const cells = [
      `${seconds} s`.padStart(7),
      String(now.offered - before.offered).padStart(9),
      String(now.served - before.served).padStart(14),
      String(now.refused - before.refused).padStart(14),
      String(now.rejected - before.rejected).padStart(15),
      formatLearnedRate(limit).padStart(14),
      `   ${limit?.state ?? ''}`,
    ];
    print(cells.join(''));
    before = now;
  };
}

function readTotals(
  practice: PracticeServer,
  traffic: TrafficGenerator,
): Record<'offered' | 'served' | 'refused' | 'rejected', number> {
  let offered = 0;
  let served = 0;
  let refused = 0;
  for (const { sent, answered } of Object.values(traffic.stats())) {
    offered += sent;
    served += answered[200] ?? 0;
    refused += (answered[429] ?? 0) + (answered[503] ?? 0);
  }
  return { offered, served, refused, rejected: practice.stats().rejected };
}

function formatLearnedRate(limit: LimitView | undefined): string {
  return limit === undefined || !Number.isFinite(limit.rate) ? 'none' : `${limit.rate.toFixed(1)}/s`;
}
