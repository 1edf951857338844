import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Millis } from '../../../src/core/scalars.ts';
import { Gcra } from '../../../src/simulator/limit-models/gcra.ts';
import { findProgram } from '../../setup/find-program.ts';
import { nginxFrame } from '../nginx-frame.ts';
import { Program } from '../program.ts';
import { freePort } from '../../support/free-port.ts';

export interface LoopOptions {
  readonly folder: string;
  readonly reports: 'refusals' | 'all' | 'none';
  readonly lasts: Millis;
  readonly token: string;
}

/** Rates a second over the second half of the run. */
export interface LoopOutcome {
  readonly passed: number;
  readonly refused: number;
  readonly unasked: number;
}

const DEMAND = 100;
const LIMIT = 50;
const LATENCY: Millis = 50;

/** Runs a real nginx with the documented configuration, Tidegate, and an app that calls a limited upstream. */
export async function runLoop({ folder, reports, lasts, token }: LoopOptions): Promise<LoopOutcome> {
  const limit = new Gcra({ kind: 'gcra', rate: LIMIT, burst: 5 });
  const counts = { passed: 0, refused: 0, unasked: 0 };
  let half = Number.POSITIVE_INFINITY;
  const count = (what: keyof typeof counts): void => {
    if (performance.now() >= half && performance.now() < half + lasts / 2) counts[what] += 1;
  };
  const reported: Promise<void>[] = [];
  let tidegateUrl = '';
  const app = createServer((request, response) => {
    const isTaken = limit.tryAcquire(performance.now()).accepted;
    count(isTaken ? 'passed' : 'refused');
    setTimeout(() => {
      const status = isTaken ? 200 : 429;
      response.writeHead(isTaken ? 200 : 502).end();
      const isReported = reports === 'all' || (reports === 'refusals' && !isTaken);
      if (isReported) reported.push(report(String(request.headers['tidegate-permit']), status));
    }, LATENCY);
  });
  const report = async (permit: string, status: number): Promise<void> => {
    const body = JSON.stringify({ permit, status });
    await fetch(`${tidegateUrl}/report`, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body });
  };
  await new Promise<void>((resolve) => {
    app.listen(0, '127.0.0.1', resolve);
  });
  const { port: appPort } = app.address() as AddressInfo;
  const tidegate = startTidegate(folder, token);
  tidegateUrl = await tidegate.printed(/"url":"([^"]+)"/);
  const port = await freePort();
  const nginx = startNginx(folder, port, { tidegate: new URL(tidegateUrl).host, app: `127.0.0.1:${appPort}` });
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 64 });
  try {
    await nginx.listening(port);
    half = performance.now() + lasts / 2;
    const until = half + lasts / 2;
    const pending: Promise<void>[] = [];
    const ask = async (): Promise<void> => {
      const { statusCode, body } = await pool.request({ path: '/v1/charges', method: 'POST' });
      await body.dump();
      if (statusCode === 429) count('unasked');
    };
    for (let due = performance.now(); due < until; due += 1000 / DEMAND) {
      await sleep(Math.max(0, due - performance.now()));
      pending.push(ask());
    }
    await Promise.all(pending);
    await Promise.all(reported); // reports are sent after the responses, so the last ones are still pending
  } finally {
    await pool.close();
    await nginx.stop();
    await tidegate.stop();
    app.closeAllConnections();
    app.close();
  }
  const seconds = lasts / 2000;
  return { passed: counts.passed / seconds, refused: counts.refused / seconds, unasked: counts.unasked / seconds };
}

function startTidegate(folder: string, token: string): Program {
  const config = join(folder, 'helper.yaml');
  writeFileSync(
    config,
    `listen: 127.0.0.1:0
admin: false
clients: {trustedProxies: [127.0.0.1]}
upstreams: {app: {url: "http://127.0.0.1:9"}}
routes: [{path: /, upstream: app, check: only}]
check: {token: ${token}}
`,
  );
  const args = ['src/main.ts', 'serve', '--config', config];
  return new Program({ command: process.execPath, args, stopSignal: 'SIGKILL' });
}

function startNginx(
  folder: string,
  port: number,
  behind: { readonly tidegate: string; readonly app: string },
): Program {
  const program = findProgram('nginx');
  if (program === undefined) throw new Error('nginx is not installed: node test/setup/programs.ts tests');
  const shown = readFileSync(join(import.meta.dirname, '../../../config/ingress/nginx.conf'), 'utf8');
  const http = shown
    .replaceAll('127.0.0.1:8080', behind.tidegate)
    .replaceAll('127.0.0.1:3000', behind.app)
    .replaceAll('listen 80;', `listen 127.0.0.1:${port};`);
  const config = join(folder, `nginx-${port}.conf`);
  writeFileSync(config, nginxFrame(folder, 'off', http));
  return new Program({ command: program, args: ['-e', 'stderr', '-p', folder, '-c', config], stopSignal: 'SIGTERM' });
}
