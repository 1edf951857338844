/** Starts Tidegate with several worker processes, as a user does. */
import { headerOf } from '../clients/send.ts';
import type { Hit } from '../upstreams/http-upstream.ts';
import { writeConfigFile } from './config-file.ts';
import type { RunningProcess } from './process.ts';
import { startProcess } from './process.ts';
import { eventually, NO_SHEDDING } from './tidegate.ts';

/** Milliseconds. Only what hangs takes as long: a busy machine takes half a minute to start three processes. */
const START = 120_000;

export interface Workers extends RunningProcess {
  readonly url: string;
  readonly adminUrl: string;
  /** The pids of all workers that have served, oldest first. */
  readonly pids: () => number[];
  /** Sums the series of /metrics that start with `series`. */
  readonly sum: (series: string) => Promise<number>;
}

/**
 * Adds `listen`, `admin`, a short `drain` and `limits` unless set.
 * @param yaml the rest of the configuration, including `workers`
 * @param env environment variables in addition to PATH
 */
export async function startWorkers(yaml: string, env: NodeJS.ProcessEnv = {}): Promise<Workers> {
  const listen = /^listen:/m.test(yaml) ? '' : 'listen: 127.0.0.1:0\n';
  const drain = /^drain:/m.test(yaml) ? '' : 'drain: {delay: 0, timeout: 5s}\n';
  const admin = /^admin:/m.test(yaml) ? '' : 'admin: 127.0.0.1:0\n';
  const limits = /^limits:/m.test(yaml) ? '' : `${NO_SHEDDING}\n`;
  const config = writeConfigFile(`${listen}${admin}${drain}${limits}${yaml}`);
  const running = startProcess(['serve', '--config', config], { env });
  let complaint = '';
  running.child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const line = await eventually(
    () => {
      if (running.child.exitCode !== null) throw new Error(`it ended: ${complaint}`);
      return running.log().find(({ msg }) => msg === 'listening');
    },
    (line) => line !== undefined,
    START,
  );
  const adminUrl = String(line?.['admin']);
  return {
    ...running,
    url: String(line?.['url']),
    adminUrl,
    pids: () => running.log().flatMap(({ msg, pid }) => (msg === 'worker is serving' ? [Number(pid)] : [])),
    sum: async (series) => {
      const exposition = await (await fetch(`${adminUrl}/metrics`)).text();
      const lines = exposition.split('\n').filter((each) => each.startsWith(series));
      return lines.reduce((sum, each) => sum + Number(each.slice(each.lastIndexOf(' ') + 1)), 0);
    },
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The number of the worker that sent a request to the upstream. */
export function workerOf({ headers }: Pick<Hit, 'headers'>): string {
  return headerOf(headers, 'x-request-id')?.split('-')[1] ?? '';
}

/**
 * Resolves when all writes so far are stored, which nothing waits for without a key. Each worker sends its messages in order, and a
 * key is granted once all before it is stored.
 * @param sendKeyed sends a write with a new key, and returns what the upstream received
 * @returns the number of writes with keys
 */
export async function untilStored(workers: number, sendKeyed: (n: number) => Promise<Hit>): Promise<number> {
  const asked = new Set<string>();
  let sent = 0;
  for (; asked.size < workers; sent += 1) asked.add(workerOf(await sendKeyed(sent)));
  return sent;
}
