import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atEnd } from '../at-end.ts';
import type { JournalEntry } from './payment-fake.ts';

const PROGRAM = fileURLToPath(new URL('payment-fake.ts', import.meta.url));

export interface PaymentFake {
  /** Unchanged after a restart. */
  readonly url: string;
  /** Sets the duration of its work; initially 20 ms. */
  readonly setLatency: (ms: number) => void;
  /** Kills the process, like a power failure. */
  readonly kill: () => Promise<void>;
  /** Restarts it with its journal. */
  readonly restart: () => Promise<void>;
  /** Returns the journal so far. */
  readonly journal: () => JournalEntry[];
}

/** Starts the upstream; killed when the test ends. */
export async function startPaymentFake(): Promise<PaymentFake> {
  const folder = mkdtempSync(join(tmpdir(), 'payment-fake-'));
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
  atEnd(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await restart();
  return {
    url: `http://127.0.0.1:${port}`,
    setLatency: (ms) => child?.send(ms),
    kill,
    restart,
    journal: () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as JournalEntry])),
  };
}
