import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { ControlTable } from '../control/table.ts';
import { pinned } from '../overhead/contenders.ts';
import { FailingReceiver } from './failing-receiver.ts';
import { startGate } from './gate.ts';

/** Between the start of a process and its end, in milliseconds. */
const SHORTEST_LIFE = 2000;
const LONGEST_LIFE = 14_000;
/** The run is given up then. */
const TIMEOUT = 285_000;
/** The first attempt, and so many others a second apart: half of each fail. */
const RETRIES = 90;

export interface KillRun {
  readonly table: ControlTable;
  /** Undefined if all is as promised. */
  readonly problem: string | undefined;
}

/** Kills Tidegate at random times while `count` notifications come in, and until half of all attempts have delivered them. */
export async function runWithKills(folder: string, count: number): Promise<KillRun> {
  const random = seededRandom(5);
  const receiver = new FailingReceiver();
  const since = performance.now();
  const hasTime = (): boolean => performance.now() - since < TIMEOUT;
  const delays = Array.from({ length: RETRIES }, () => '1s').join(', ');
  let gate = await startGate(folder, {
    // A killed process loses nothing with either durability. This one syncs the disk less often.
    ...{ name: 'kill', durability: 'normal', receiver: await receiver.start() },
    deliver: `schedule: {delays: [${delays}]}, orderBy: {json: key}, concurrency: 200`,
  });
  const [command, args] = pinned(0, process.execPath, [senderProgram, gate.url, String(count)]);
  const sender = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let kills = 0;
  let acceptedAfter: number | undefined;
  let repeats = 0;
  void text(sender.stdout).then((printed) => {
    acceptedAfter = performance.now() - since;
    repeats = Number(printed);
  });
  try {
    for (;;) {
      const life = SHORTEST_LIFE + random() * (LONGEST_LIFE - SHORTEST_LIFE);
      for (let waited = 0; waited < life && receiver.acknowledged < count; waited += 20) await sleep(20);
      if (receiver.acknowledged >= count || !hasTime()) break;
      await gate.stop();
      kills += 1;
      gate = await gate.start();
    }
    const took = performance.now() - since;
    const left = await waitUntilOver(gate);
    const found = receiver.findings;
    const lost = count - found.acknowledged;
    const seconds = (time: number | undefined): string => (time === undefined ? '–' : (time / 1000).toFixed(0));
    const rows = [
      ['notifications', String(count)],
      ['kills', String(kills)],
      ['seconds until all were accepted', seconds(acceptedAfter)],
      ['seconds until all were delivered', seconds(took)],
      ['requests that the sender repeated', String(repeats)],
      ['attempts', String(found.attempts)],
      ['lost', String(lost)],
      ['dead, or not over at the end', String(left)],
      ['delivered more than once, under the same id', String(found.duplicates)],
      ['sent under more than one id', String(found.renamed)],
      [`out of order, of ${found.keys} keys`, String(found.outOfOrder)],
    ];
    const table = { title: 'Notifications while the process is killed', head: ['', 'number'], rows };
    if (!hasTime()) return { table, problem: 'not over in time: what is not delivered may be waiting' };
    const isKept = lost === 0 && left === 0 && found.renamed === 0 && found.outOfOrder === 0;
    return { table, problem: isKept ? undefined : 'a notification was lost, renamed or out of order: see the table' };
  } finally {
    sender.kill('SIGKILL');
    await gate.stop();
    receiver.stop();
  }
}

const senderProgram = fileURLToPath(new URL('sender.ts', import.meta.url));

/** Results of the last attempts are stored within a turn of the event loop. @returns how many are dead or still wait */
async function waitUntilOver({ metric }: { readonly metric: (series: string) => Promise<number> }): Promise<number> {
  const states = ['waiting', 'sending', 'dead'];
  for (let look = 0; ; look += 1) {
    const counts = await Promise.all(states.map((state) => metric(`tidegate_deliveries{state="${state}"}`)));
    const left = counts.reduce((sum, each) => sum + each, 0);
    if (left === 0 || look === 50) return left;
    await sleep(100);
  }
}
