/**
 * Which requests does the proxy reject in front of a healthy, unlimited upstream when clients outnumber its connections?
 * `npm run bench:connections`
 */
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { startApp } from '../../src/app.ts';
import { readFile } from '../../src/cli/read-file.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

const RUNS = [
  { clients: 500, latency: 50, requests: 20_000 },
  { clients: 1000, latency: 50, requests: 20_000 },
  { clients: 800, latency: 200, requests: 10_000 },
];
const isSmoke = process.argv.includes('--smoke');

for (const { clients, latency, requests } of RUNS) {
  const upstream = createServer((asked, response) => {
    asked.resume();
    setTimeout(() => response.end('ok'), latency);
  }).listen(0, '127.0.0.1', 4096);
  await once(upstream, 'listening');
  const yaml = `
listen: 127.0.0.1:0
admin: false
limits: {overload: {eventLoopDelay: 1h}}
upstreams: {api: {url: "http://127.0.0.1:${(upstream.address() as AddressInfo).port}"}}
`;
  const loaded = loadConfig(yaml, 'bench.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const logger = createLogger({ level: 'silent', destination: nowhere });
  const app = await startApp(loaded.config, { logger, version: 'bench', substituted: loaded.substituted });

  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const answered = new Map<number, number>();
  let left = isSmoke ? clients : requests;
  const since = performance.now();
  const ask = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const asked = request(app.url, { agent }, (response) => {
        const { statusCode = 0 } = response;
        answered.set(statusCode, (answered.get(statusCode) ?? 0) + 1);
        response.resume().on('end', resolve);
      });
      asked.on('error', reject).end();
    });
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await ask();
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - since) / 1000;
  const refused = [...answered].reduce((sum, [status, count]) => sum + (status === 200 ? 0 : count), 0);
  const all = [...answered].map(([status, count]) => `${status}: ${count}`).join(', ');
  console.log(
    `${clients} clients, ${latency} ms, 256 connections: ${refused} refused (${all}) in ${seconds.toFixed(1)} s`,
  );
  agent.destroy();
  await app.close();
  upstream.close();
  upstream.closeAllConnections();
}
process.exit(0);
