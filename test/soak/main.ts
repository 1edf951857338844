// A long test with everything at once: all kinds of clients, a hidden limit, and faults of networks and upstreams, in
// front of a proxy with the default configuration. Clients use TLS, over HTTP/1.1 and HTTP/2 (`--plain`: neither); one
// upstream uses TLS and HTTP/2. Exits with 1 if a request was lost, something leaked, or the
// log has a warning or error that no fault explains.
//
//   npm run soak -- --minutes 10

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Millis } from '../../src/core/scalars.ts';
import type { LogLine } from '../support/proxy/probed-process.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startProbedProcess } from '../support/proxy/probed-process.ts';
import type { Relay } from '../support/relay/relay.ts';
import { startRelay } from '../support/relay/relay.ts';
import { SoakCounts } from './soak-counts.ts';
import { SoakClients } from './soak-clients.ts';
import { explainLogLine, formatRecentFaults } from './expected-log-lines.ts';
import { FAULT_NAMES, FaultInjector } from './fault-injector.ts';
import { checkLedger } from './check-ledger.ts';
import type { SoakOptions } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import { waitUntilIdle, findLeaks } from './idle-state.ts';
import { SoakTable } from './soak-table.ts';
import type { UpstreamChange, UpstreamUrls } from './upstream.ts';

const MINUTE: Millis = 60_000;
/** Maximum share of all requests; measured: 10 of 48,000 in four minutes. */
const MAX_DROPPED_SHARE = 0.001;
/** Of a short run: the share is an average. */
const MIN_DROPPED = 5;
const LINE_INTERVAL: Millis = 10_000;
const MAX_FAULT_INTERVAL: Millis = 5000;
const SHOWN = 20;

async function soak({ minutes, seed, transport }: SoakOptions): Promise<readonly string[]> {
  const certificates = makeCertificates(30);
  process.once('exit', () => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
  const [ca, cert, key] = ['ca.crt', 'server.crt', 'server.key'].map(certificates.path);
  const upstream = fork(fileURLToPath(new URL('upstream.ts', import.meta.url)), [
    String(seed),
    certificates.path('server'),
  ]);
  process.once('exit', () => upstream.kill('SIGKILL'));
  const [places] = (await once(upstream, 'message')) as [UpstreamUrls];
  const change = (what: UpstreamChange): void => void upstream.send(what);
  const relays = [
    await startRelay(places.pay, { seed }),
    await startRelay(places.feed, { seed: seed + 1 }),
    await startRelay(places.secure, { seed: seed + 4 }),
  ];
  const [pay, feed, secure] = relays.map(({ url }) => new URL(url).port);

  const account = new SoakCounts();
  const warnings: LogLine[] = [];
  const gate = await startProbedProcess(
    `listen: {address: 127.0.0.1:0${transport === 'tls' ? `, tls: {cert: ${cert}, key: ${key}}, http2: true` : ''}}
upstreams:
  pay: {url: "http://localhost:${pay}"}
  feed: {url: "http://localhost:${feed}"}
  secure: {url: "https://localhost:${secure}", http2: true, tls: {ca: ${ca}}}
routes: [{path: /feed, upstream: feed}, {path: /secure, upstream: secure}, {path: /, upstream: pay}]`,
    (line) => {
      if (line['msg'] === 'request') account.countLogged(line);
      if (line['level'] !== 'info') warnings.push(line);
    },
  );
  process.once('exit', () => gate.kill());
  let isOver = false;
  void gate.ended.then((complaints) => {
    if (isOver) return;
    for (const line of warnings) if (line['level'] === 'fatal') console.error(`FAULT ${JSON.stringify(line)}`);
    console.error(`FAULT the proxy ended with ${String(gate.exitCode)}${complaints}\nFAILED`);
    process.exit(1);
  });
  const idle = await gate.heldResources();
  await gate.setDnsFailure();

  const slow = await startRelay(gate.url, { seed: seed + 2 });
  slow.injectFaults({ up: { trickle: { bytes: 60, every: 30 } }, down: { trickle: { bytes: 200, every: 20 } } });
  const broken = await startRelay(gate.url, { seed: seed + 3 });
  broken.injectFaults((_, random) => ({
    [random() < 0.5 ? 'up' : 'down']: { end: { after: [0, 3500], how: random() < 0.5 ? 'cut' : 'reset' } },
  }));
  const through = (relay: Relay): string => relay.url.replace('http:', new URL(gate.url).protocol);
  const doors = { url: gate.url, ca: certificates.read('ca.crt'), slow: through(slow), broken: through(broken) };
  const clients = new SoakClients(doors, account, seed);
  const total = minutes * MINUTE;
  const faultInterval = Math.min(MAX_FAULT_INTERVAL, total / (3.5 * FAULT_NAMES.length));
  const faults = new FaultInjector({ relays, gate, change }, faultInterval, seed);
  const table = new SoakTable(account);

  /** Runs load and faults for this long, then waits until the proxy is idle. */
  const load = async (length: Millis): Promise<Awaited<ReturnType<typeof waitUntilIdle>>> => {
    const until = performance.now() + length;
    clients.start();
    faults.start();
    for (let left = length; left > 0; left = until - performance.now()) {
      await sleep(Math.min(LINE_INTERVAL, left));
      console.log(table.line(await gate.heldResources(), faults.records));
    }
    await faults.stop();
    await clients.stop();
    return waitUntilIdle(gate, relays, idle);
  };

  console.log(
    `${minutes} min, seed ${seed}, clients over ${transport.toUpperCase()}; a fault every ${((2 * faultInterval) / 1000).toFixed(1)} s at most; Node ${process.version}`,
  );
  console.log(table.head());
  const started = performance.now();
  const firstLoad = Math.min(MINUTE, total / 3);
  const first = await load(firstLoad);
  const elapsed = performance.now() - started;
  const last = await load(total - elapsed - (elapsed - firstLoad)); // the last idle phase takes as long as the first

  for (const relay of [slow, broken, ...relays]) await relay.close();
  const ledger = await checkLedger(places.pay, clients.charges);
  isOver = true;
  await gate.stop();
  upstream.kill('SIGKILL');

  const requestSeries = [...last.metrics].filter(([name]) => name.startsWith('tidegate_requests_total{'));
  const counted = requestSeries.reduce((sum, [, value]) => sum + value, 0);
  const explained = warnings.map((line) => ({ line, why: explainLogLine(line, faults.records) }));
  for (const [why, lines] of Map.groupBy(explained, (each) => each.why)) {
    if (why !== undefined) console.log(`${String(lines.length).padStart(7)} warnings: ${why}`);
  }
  const shed = ['event_loop', 'heap']
    .map((bound) => last.metrics.get(`tidegate_bound_reached_total{bound="${bound}"}`) ?? Number.NaN)
    .reduce((sum, times) => sum + times, 0);
  const { sent, left, shed: shedReceived } = account.totals();
  const mb = (bytes: number): string => (bytes / 1024 / 1024).toFixed(2);
  console.log(
    `${sent} requests sent, ${left} of them aborted; ${account.lines} logged, ${shed} shed, ${counted} counted; ${ledger.summary}`,
  );
  const { dropped } = account;
  console.log(`${dropped} responses dropped by clients as their HTTP/2 connections ended`);
  console.log(`${faults.records.length} faults of ${new Set(faults.records.map(({ name }) => name)).size} kinds`);
  console.log(
    `idle: ${mb(first.held.bytes)} MB and ${first.held.files} files after the first minute, ${mb(last.held.bytes)} MB and ${last.held.files} files at the end`,
  );

  return [
    ...account.faults,
    ...account.differences(),
    ...(dropped > Math.max(MIN_DROPPED, MAX_DROPPED_SHARE * sent)
      ? [`${dropped} responses were dropped as their connections ended`]
      : []),
    ...(counted === account.lines + shed
      ? []
      : [`${counted} requests were counted, ${account.lines} logged and ${shed} shed`]),
    ...(shedReceived > shed
      ? [`${shedReceived} clients received an overload rejection, but the proxy counts ${shed}`]
      : []),
    ...first.faults,
    ...last.faults,
    ...findLeaks(first, last, total >= 3 * MINUTE ? 'long' : 'short'),
    ...ledger.faults,
    ...explained.flatMap(({ line, why }) =>
      why === undefined
        ? [`unexplained: ${JSON.stringify(line)}, after ${formatRecentFaults(line, faults.records)}`]
        : [],
    ),
    ...(gate.exitCode === 0 ? [] : [`the proxy ended with ${String(gate.exitCode)}`]),
  ];
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else {
    const faults = await soak(options);
    for (const fault of faults.slice(0, SHOWN)) console.error(`FAULT ${fault}`);
    if (faults.length > SHOWN) console.error(`FAULT … and ${faults.length - SHOWN} more`);
    console.log(faults.length === 0 ? 'PASSED' : 'FAILED');
    if (faults.length > 0) process.exitCode = 1;
  }
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
