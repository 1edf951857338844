/** Tidegate in a process of its own, whose configuration is rewritten while it runs. */
import { renameSync, writeFileSync } from 'node:fs';
import { writeConfigFile } from './config-file.ts';
import type { Running } from './process.ts';
import { startProcess } from './process.ts';
import { eventually } from './tidegate.ts';

const START = 40_000;

export interface Reloadable extends Running {
  readonly url: string;
  readonly adminUrl: string;
  readonly file: string;
  /** Puts another file in its place, as an editor does. `listen` and its kin are given. */
  readonly rewrite: (yaml: string) => void;
  /** Readings that took effect, so far. */
  readonly reloads: () => number;
  /** What was wrong with those that did not. */
  readonly problems: () => string[];
  /** The value of a series, as it is exposed; undefined when absent. */
  readonly metric: (series: string) => Promise<number | undefined>;
}

const GIVEN = 'listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n';

/** @param given instead of `listen`, `admin` and a short `drain` */
export async function startReloadable(
  yaml: string,
  { given = `${GIVEN}drain: {delay: 0, timeout: 5s}\n`, file = writeConfigFile(`${given}${yaml}`), env = {} } = {},
): Promise<Reloadable> {
  const running = startProcess(['serve', '--config', file], { env });
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
  const told = (text: string) => running.log().filter(({ msg }) => String(msg).startsWith(text));
  return {
    ...running,
    url: String(line?.['url']),
    adminUrl,
    file,
    rewrite: (next) => {
      writeFileSync(`${file}~`, `${given}${next}`);
      renameSync(`${file}~`, file);
    },
    reloads: () => told('configuration reloaded').length,
    problems: () => told('configuration not reloaded').map(({ problem }) => String(problem)),
    metric: async (series) => {
      const exposition = await (await fetch(`${adminUrl}/metrics`)).text();
      const found = exposition.split('\n').find((each) => each.startsWith(`${series} `));
      return found === undefined ? undefined : Number(found.slice(series.length + 1));
    },
  };
}
