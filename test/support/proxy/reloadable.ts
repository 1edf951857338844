/** Starts Tidegate in its own process, with a configuration that the test rewrites. */
import { renameSync, writeFileSync } from 'node:fs';
import { writeConfigFile } from './config-file.ts';
import type { RunningProcess } from './process.ts';
import { startProcess } from './process.ts';
import { eventually, NO_SHEDDING } from './tidegate.ts';

const START = 40_000;

export interface Reloadable extends RunningProcess {
  readonly url: string;
  readonly adminUrl: string;
  readonly file: string;
  /** Replaces the file atomically, as an editor does. `listen`, `admin`, `drain` and `limits` are added. */
  readonly rewrite: (yaml: string) => void;
  /** Number of successful reloads so far. */
  readonly reloads: () => number;
  /** Errors of failed reloads. */
  readonly problems: () => string[];
  /** Returns the exposed value of a series; undefined if absent. */
  readonly metric: (series: string) => Promise<number | undefined>;
}

const GIVEN = 'listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n';

function complete(yaml: string, given: string): string {
  // At the end, so that the lines of `yaml` keep their numbers.
  return `${given}${yaml}${/^limits:/m.test(yaml) ? '' : `\n${NO_SHEDDING}\n`}`;
}

/** @param given replaces `listen`, `admin` and a short `drain` */
export async function startReloadable(
  yaml: string,
  { given = `${GIVEN}drain: {delay: 0, timeout: 5s}\n`, file = writeConfigFile(complete(yaml, given)), env = {} } = {},
): Promise<Reloadable> {
  const running = startProcess(['serve', '--config', file], { env });
  let complaint = '';
  running.child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  const line = await eventually(
    () => {
      if (running.child.exitCode !== null) throw new Error(`it ended: ${complaint}`);
      return running.log().find(({ msg }) => msg === 'listening');
    },
    (linesStarting) => linesStarting !== undefined,
    START,
  );
  const adminUrl = String(line?.['admin']);
  const linesStarting = (text: string) => running.log().filter(({ msg }) => String(msg).startsWith(text));
  return {
    ...running,
    url: String(line?.['url']),
    adminUrl,
    file,
    rewrite: (next) => {
      writeFileSync(`${file}~`, complete(next, given));
      renameSync(`${file}~`, file);
    },
    reloads: () => linesStarting('configuration reloaded').length,
    problems: () => linesStarting('configuration not reloaded').map(({ problem }) => String(problem)),
    metric: async (series) => {
      const exposition = await (await fetch(`${adminUrl}/metrics`)).text();
      const found = exposition.split('\n').find((each) => each.startsWith(`${series} `));
      return found === undefined ? undefined : Number(found.slice(series.length + 1));
    },
  };
}
