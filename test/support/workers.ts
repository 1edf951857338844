/** Tidegate in several processes, as a user starts it. */
import { writeConfigFile } from './config-file.ts';
import type { Running } from './process.ts';
import { startProcess } from './process.ts';
import { eventually } from './tidegate.ts';

/** A machine that has other work takes seconds to start three processes. */
const START = 40_000;

export interface Workers extends Running {
  readonly url: string;
  readonly adminUrl: string;
  /** Of those that served so far, oldest first. */
  readonly pids: () => number[];
  /** All series of /metrics whose written form begins so, added up. */
  readonly sum: (series: string) => Promise<number>;
}

/**
 * `listen`, `admin` and a short `drain` are given unless it says them.
 * @param yaml what else the configuration says, `workers` among it
 * @param env of the process, beside PATH
 */
export async function startWorkers(yaml: string, env: NodeJS.ProcessEnv = {}): Promise<Workers> {
  const listen = /^listen:/m.test(yaml) ? '' : 'listen: 127.0.0.1:0\n';
  const drain = /^drain:/m.test(yaml) ? '' : 'drain: {delay: 0, timeout: 5s}\n';
  const admin = /^admin:/m.test(yaml) ? '' : 'admin: 127.0.0.1:0\n';
  const config = writeConfigFile(`${listen}${admin}${drain}${yaml}`);
  const running = startProcess(['serve', '--config', config], { env });
  let complaint = '';
  running.child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const line = await eventually(
    () => {
      if (running.child.exitCode !== null) throw new Error(`it ended: ${complaint}`);
      return running.log().find(({ msg }) => msg === 'listening');
    },
    (told) => told !== undefined,
    START,
  );
  const adminUrl = String(line?.['admin']);
  return {
    ...running,
    url: String(line?.['url']),
    adminUrl,
    pids: () => running.log().flatMap(({ msg, pid }) => (msg === 'a worker serves' ? [Number(pid)] : [])),
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
