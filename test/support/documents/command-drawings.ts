/** The drawings of docs/ that a command of Tidegate makes with `--svg`. */
import { readFile } from '../../../src/cli/read-file.ts';
import { runBackoff } from '../../../src/cli/backoff/backoff-command.ts';
import { parseArguments } from '../../../src/cli/parse-arguments.ts';
import { runSimulate } from '../../../src/cli/simulate-command.ts';
import { runLab } from '../../../src/laboratory/commands/lab-command.ts';

/** The command by the path of its drawing in docs/, without `.svg`. */
export const COMMAND_DRAWINGS: Readonly<Record<string, string>> = {
  'simulator-step-up-3x': 'simulate step-up-3x',
  'control/fixed-window-10s': 'simulate fixed-window-10s',
  'backoff/side-by-side': 'backoff exponential full-jitter equal-jitter decorrelated-jitter',
  'backoff/contention': 'lab contention',
  'backoff/throughput': 'lab aloha',
  'backoff/chain': 'lab aloha --n 400 --k 100 --load 0.34',
  'backoff/channel': 'lab aloha table ethernet full-jitter fixed --base 10ms --n 400 --load 0.34 --slots 100000',
  'backoff/segment': 'lab ethernet',
  'backoff/herd': 'lab thundering-herd',
};

/** Returns what the command would write with `--svg`. @throws if it fails or draws nothing */
export async function drawByCommand(line: string): Promise<string> {
  const drawing = (await run(line))?.();
  if (drawing === undefined) throw new Error(`tidegate ${line} draws nothing`);
  return drawing;
}

async function run(line: string): Promise<(() => string) | undefined> {
  const command = parseArguments(line.split(' '));
  const environment = { env: {}, readFile };
  if (command.kind === 'simulate') return drawingOf(runSimulate({ ...command, width: 80 }, environment));
  if (command.kind === 'backoff') return drawingOf(runBackoff(command, 80));
  if (command.kind !== 'lab') return undefined;
  const { signal } = new AbortController();
  return drawingOf(await runLab(command, { signal, terminal: undefined, environment }));
}

function drawingOf(
  result: { readonly kind: 'failed'; readonly message: string } | { readonly draw: (() => string) | undefined },
): (() => string) | undefined {
  if ('message' in result) throw new Error(result.message);
  return result.draw;
}
