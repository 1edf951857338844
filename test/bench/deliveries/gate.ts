import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { BUILT, ensureBuilt } from '../build.ts';
import { pinned } from '../overhead/contenders.ts';
import { Program } from '../program.ts';

export interface GateOptions {
  /** Of its files. */
  readonly name: string;
  readonly durability: 'normal' | 'full';
  /** The URL of the upstream. */
  readonly receiver: string;
  /** More keys of `deliver`. */
  readonly deliver?: string;
}

/** Tidegate in a process of its own, on a processor of its own. */
export interface Gate {
  readonly url: string;
  readonly pid: number;
  /** 0 if there is no such series. */
  readonly metric: (series: string) => Promise<number>;
  /** As `kill -9` does: the database stays as it is. */
  readonly stop: () => Promise<void>;
  /** Starts it again, with the same database. */
  readonly start: () => Promise<Gate>;
}

/** It has one route, `/hooks`, which delivers. */
export async function startGate(folder: string, options: GateOptions): Promise<Gate> {
  ensureBuilt();
  const { name, durability, receiver, deliver = '' } = options;
  const [port, adminPort] = [await freePort(), await freePort()];
  const file = join(folder, `${name}.yaml`);
  writeFileSync(
    file,
    `
listen: 127.0.0.1:${port}
admin: 127.0.0.1:${adminPort}
log: {level: error}
secret: a-secret-of-the-benchmark-0123456789
state: {store: sqlite, file: ${join(folder, `${name}.db`)}, durability: ${durability}}
upstreams: {shop: {url: "${receiver}"}}
routes:
  - {path: /hooks, upstream: shop, deliver: {eventId: {json: id}, ${deliver}}}
`,
  );
  const [command, args] = pinned(1, process.execPath, [BUILT, 'serve', '--config', file]);
  const start = async (): Promise<Gate> => {
    const program = new Program({ command, args, stopSignal: 'SIGKILL' });
    await program.listening(port);
    const metric = async (series: string): Promise<number> => {
      const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`);
      const line = (await response.text()).split('\n').find((each) => each.startsWith(`${series} `));
      return Number(line?.slice(series.length + 1) ?? 0);
    };
    const url = `http://127.0.0.1:${port}`;
    return { url, pid: program.pid ?? 0, metric, stop: () => program.stop(), start };
  };
  return start();
}
