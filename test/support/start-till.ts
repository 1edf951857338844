import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Booked } from './till.ts';

const PROGRAM = fileURLToPath(new URL('till.ts', import.meta.url));

export interface Till {
  /** The same after a restart. */
  readonly url: string;
  /** From now on its work takes this many milliseconds; 20 at first. */
  readonly work: (ms: number) => void;
  /** As a power cut does it. */
  readonly kill: () => Promise<void>;
  /** With the books that it left. */
  readonly restart: () => Promise<void>;
  /** What it has written in its books so far. */
  readonly books: () => Booked[];
}

/** Starts one; killed when the test ends. */
export async function startTill(): Promise<Till> {
  const folder = mkdtempSync(join(tmpdir(), 'till-'));
  const file = join(folder, 'books');
  let child: ChildProcess | undefined;
  let port = 0;
  const kill = async (): Promise<void> => {
    if (child === undefined) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    child = undefined;
    await closed;
  };
  const restart = async (): Promise<void> => {
    child = fork(PROGRAM, [file, String(port)]);
    const [listening] = (await once(child, 'message')) as [number];
    port = listening;
  };
  onTestFinished(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await restart();
  return {
    url: `http://127.0.0.1:${port}`,
    work: (ms) => child?.send(ms),
    kill,
    restart,
    books: () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Booked])),
  };
}
