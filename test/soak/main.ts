// Everything at once, for as long as you like: all kinds of clients, a hidden limit, faults of networks and upstreams, in
// front of a proxy with the default configuration. Clients come by TLS, over HTTP/1.1 and HTTP/2 (`--plain`: without both); one
// upstream is spoken to by TLS and HTTP/2. Ends with 1 when a request was lost, when something leaked, or when the
// log has a line of trouble that no fault explains.
//
//   npm run soak -- --minutes 10

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { LogLine } from '../support/probed.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startProbed } from '../support/probed.ts';
import type { Relay } from '../support/relay.ts';
import { startRelay } from '../support/relay.ts';
import { Account } from './account.ts';
import { Clients } from './clients.ts';
import { explain, tellBefore } from './expected.ts';
import { FAULT_NAMES, Faults } from './faults.ts';
import { checkLedger } from './ledger.ts';
import type { Options } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import { comeToRest, findLeaks } from './rest.ts';
import { Table } from './table.ts';
import type { Change, Places } from './upstream.ts';

const MINUTE: Millis = 60_000;
/** Of all requests; 10 of 48 000 in four minutes. */
const MOST_DROPPED = 0.001;
const LINE_EVERY: Millis = 10_000;
const LONGEST_BEAT: Millis = 5000;
const SHOWN = 20;

async function soak({ minutes, seed, by }: Options): Promise<readonly string[]> {
  const certificates = makeCertificates();
  process.once('exit', () => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
  const [ca, cert, key] = ['ca.crt', 'server.crt', 'server.key'].map(certificates.path);
  const upstream = fork(fileURLToPath(new URL('upstream.ts', import.meta.url)), [
    String(seed),
    certificates.path('server'),
  ]);
  process.once('exit', () => upstream.kill('SIGKILL'));
  const [places] = (await once(upstream, 'message')) as [Places];
  const change = (what: Change): void => void upstream.send(what);
  const relays = [
    await startRelay(places.pay, { seed }),
    await startRelay(places.feed, { seed: seed + 1 }),
    await startRelay(places.secure, { seed: seed + 4 }),
  ];
  const [pay, feed, secure] = relays.map(({ url }) => new URL(url).port);

  const account = new Account();
  const trouble: LogLine[] = [];
  const gate = await startProbed(
    `listen: {address: 127.0.0.1:0${by === 'tls' ? `, tls: {cert: ${cert}, key: ${key}}, http2: true` : ''}}
upstreams:
  pay: {url: "http://localhost:${pay}"}
  feed: {url: "http://localhost:${feed}"}
  secure: {url: "https://localhost:${secure}", http2: true, tls: {ca: ${ca}}}
routes: [{path: /feed, upstream: feed}, {path: /secure, upstream: secure}, {path: /, upstream: pay}]`,
    (line) => {
      if (line['msg'] === 'request') account.log(line);
      if (line['level'] !== 'info') trouble.push(line);
    },
  );
  process.once('exit', () => gate.kill());
  let isOver = false;
  void gate.ended.then((complaints) => {
    if (isOver) return;
    for (const line of trouble) if (line['level'] === 'fatal') console.error(`FAULT ${JSON.stringify(line)}`);
    console.error(`FAULT the proxy ended with ${String(gate.exitCode)}${complaints}\nFAILED`);
    process.exit(1);
  });
  const idle = await gate.held();
  await gate.lookups();

  const slow = await startRelay(gate.url, { seed: seed + 2 });
  slow.spoil({ up: { trickle: { bytes: 60, every: 30 } }, down: { trickle: { bytes: 200, every: 20 } } });
  const broken = await startRelay(gate.url, { seed: seed + 3 });
  broken.spoil((_, random) => ({
    [random() < 0.5 ? 'up' : 'down']: { end: { after: [0, 3500], how: random() < 0.5 ? 'cut' : 'reset' } },
  }));
  const through = (relay: Relay): string => relay.url.replace('http:', new URL(gate.url).protocol);
  const doors = { url: gate.url, ca: certificates.read('ca.crt'), slow: through(slow), broken: through(broken) };
  const clients = new Clients(doors, account, seed);
  const total = minutes * MINUTE;
  const beat = Math.min(LONGEST_BEAT, total / (3.5 * FAULT_NAMES.length));
  const faults = new Faults({ relays, gate, change }, beat, seed);
  const table = new Table(account);

  /** Load and faults for so long, and then a rest. */
  const load = async (length: Millis): Promise<Awaited<ReturnType<typeof comeToRest>>> => {
    const until = performance.now() + length;
    clients.start();
    faults.start();
    for (let left = length; left > 0; left = until - performance.now()) {
      await sleep(Math.min(LINE_EVERY, left));
      console.log(table.line(await gate.held(), faults.happened));
    }
    await faults.stop();
    await clients.stop();
    return comeToRest(gate, relays, idle);
  };

  console.log(
    `${minutes} min, seed ${seed}, clients by ${by.toUpperCase()}; a fault every ${((2 * beat) / 1000).toFixed(1)} s at most; Node ${process.version}`,
  );
  console.log(table.head());
  const started = performance.now();
  const firstLoad = Math.min(MINUTE, total / 3);
  const first = await load(firstLoad);
  const elapsed = performance.now() - started;
  const last = await load(total - elapsed - (elapsed - firstLoad)); // the last rest takes as long as the first

  for (const relay of [slow, broken, ...relays]) await relay.close();
  const ledger = await checkLedger(places.pay, clients.charges);
  isOver = true;
  await gate.stop();
  upstream.kill('SIGKILL');

  const told = [...last.metrics].filter(([name]) => name.startsWith('tidegate_requests_total{'));
  const counted = told.reduce((sum, [, value]) => sum + value, 0);
  const explained = trouble.map((line) => ({ line, why: explain(line, faults.happened) }));
  for (const [why, lines] of Map.groupBy(explained, (each) => each.why)) {
    if (why !== undefined) console.log(`${String(lines.length).padStart(7)} lines of trouble: ${why}`);
  }
  const shed = ['event_loop', 'heap']
    .map((bound) => last.metrics.get(`tidegate_bound_reached_total{bound="${bound}"}`) ?? Number.NaN)
    .reduce((sum, times) => sum + times, 0);
  const { sent, left, shed: shedTold } = account.totals();
  const mb = (bytes: number): string => (bytes / 1024 / 1024).toFixed(2);
  console.log(
    `${sent} requests asked, ${left} of them left; ${account.lines} logged, ${shed} shed, ${counted} counted; ${ledger.told}`,
  );
  const { dropped } = account;
  console.log(`${dropped} answers dropped by clients as their HTTP/2 connections were being ended`);
  console.log(`${faults.happened.length} faults of ${new Set(faults.happened.map(({ name }) => name)).size} kinds`);
  console.log(
    `at rest: ${mb(first.held.bytes)} MB and ${first.held.files} files after the first minute, ${mb(last.held.bytes)} MB and ${last.held.files} files at the end`,
  );

  return [
    ...account.faults,
    ...account.differences(),
    ...(dropped > MOST_DROPPED * sent ? [`${dropped} answers were dropped as their connections were being ended`] : []),
    ...(counted === account.lines + shed
      ? []
      : [`${counted} requests were counted, ${account.lines} logged and ${shed} shed`]),
    ...(shedTold > shed ? [`${shedTold} were told that the proxy has too much to do, and it turned ${shed} away`] : []),
    ...first.faults,
    ...last.faults,
    ...findLeaks(first, last, total >= 3 * MINUTE ? 'long' : 'short'),
    ...ledger.faults,
    ...explained.flatMap(({ line, why }) =>
      why === undefined ? [`unexplained: ${JSON.stringify(line)}, after ${tellBefore(line, faults.happened)}`] : [],
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
