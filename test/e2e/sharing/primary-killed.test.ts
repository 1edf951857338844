/** Workers whose primary is killed before they serve. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { stateAt } from '../../support/proxy/replicas.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { isAlive } from '../../support/proxy/workers.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

const PATIENCE = 300_000;
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 60_000;

function childrenOf(pid: number): number[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
  return pids === '' ? [] : pids.split(' ').map(Number);
}

/** The processes that have a connection to a port. */
function connectedTo(port: number): Set<number> {
  const sockets = execFileSync('ss', ['-tnpH', 'state', 'connected', `dport = :${port}`], { encoding: 'utf8' });
  return new Set([...sockets.matchAll(/pid=(\d+)/g)].map(([, pid]) => Number(pid)));
}

test(
  'workers that are starting when their primary is killed end, although they are connected to Redis',
  async () => {
    const redis = await startRedis();
    redis.freeze(); // a worker waits a second for its reply, and then asks the primary for the listening socket
    const listen = 'listen: 127.0.0.1:0\nadmin: false\nworkers: 2\n';
    const config = writeConfigFile(`${listen}${stateAt(redis.url)}upstreams: {api: {url: "http://127.0.0.1:9"}}`);
    const { child } = startProcess(['serve', '--config', config]);
    const primary = child.pid ?? 0;
    const workers = await eventually(
      () => {
        const connected = connectedTo(redis.port);
        const children = childrenOf(primary);
        return children.some((pid) => connected.has(pid)) ? children : [];
      },
      (pids) => pids.length === 2,
      WITHIN,
    );
    child.kill('SIGKILL');
    onTestFinished(() => {
      for (const pid of workers.filter(isAlive)) process.kill(pid, 'SIGKILL');
    });
    redis.thaw();
    const left = await eventually(
      () => workers.filter(isAlive),
      (alive) => alive.length === 0,
      WITHIN,
    );
    expect(left).toEqual([]);
  },
  PATIENCE,
);
