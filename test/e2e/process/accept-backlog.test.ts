import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { flood } from '../../support/clients/flood.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

/** Four times what Node's own backlog holds. */
const CONNECTIONS = 2000;

async function start(settings: string) {
  const { url: upstream } = await listen((request, response) => {
    request.resume();
    response.end();
  });
  const config = writeConfigFile(`
listen: 127.0.0.1:0
${settings}
limits: {overload: {eventLoopDelay: 1m}}   # the test stops the process
upstreams: {api: {url: "${upstream}", rateLimit: {initialRate: 100000/s, maxRate: 100000/s}, queue: {maxWait: 1m}}}
routes: [{path: /, upstream: api}]
`);
  const { child, log } = startProcess(['--config', config]);
  const [listening] = await eventually(
    () => log().filter(({ msg }) => msg === 'listening'),
    ({ length }) => length === 1,
  );
  return { child, url: String(listening?.['url']) };
}

/** The numbers of connections that wait to be accepted, and that may wait, at a port. */
function readBacklog(url: string): [waiting: number, limit: number] {
  const columns = execFileSync('ss', ['-ltnH', `sport = :${new URL(url).port}`], { encoding: 'utf8' }).split(/\s+/);
  return [Number(columns[1]), Number(columns[2])];
}

/** The kernel's own bound. */
const somaxconn = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));

test('while the process is stopped, thousands of connections wait, and all are served afterwards', async () => {
  const { child, url } = await start('');
  child.kill('SIGSTOP');
  const flooded = flood(url, {
    connections: CONNECTIONS,
    requests: CONNECTIONS,
    ahead: 1,
    request: () => 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  });
  const expected = Math.min(CONNECTIONS, somaxconn);
  await eventually(
    () => readBacklog(url),
    ([waiting]) => waiting >= expected,
  );
  child.kill('SIGCONT');
  expect(await flooded).toEqual({ answered: { 200: CONNECTIONS }, cut: 0 });
});

test('workers share a backlog of the same length', async () => {
  const { url } = await start('workers: 2');
  expect(readBacklog(url)).toEqual([0, Math.min(4096, somaxconn)]);
});
