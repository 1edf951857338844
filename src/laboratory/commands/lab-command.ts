/** `tidegate lab`: runs a study to its end, or until somebody stops it. */
import type { Surroundings } from '../../config/load/substitute.ts';
import type { LabCommand } from './lab-arguments.ts';
import { conduct } from './run-experiment.ts';
import type { Terminal } from './progress-bar.ts';
import { ProgressBar } from './progress-bar.ts';
import { StudyError } from './study-error.ts';
import { makeStudy } from './make-study.ts';

/** What a terminal gives to a command that takes a while. */
export interface Desk {
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Where a bar is drawn; undefined where nobody sees it. */
  readonly terminal: Terminal | undefined;
  readonly surroundings: Surroundings;
}

export type LabReport =
  | {
      readonly kind: 'ran';
      /** Lines, each ended by a newline. */
      readonly text: string;
      /** For standard error. */
      readonly remarks: string;
      /** Undefined where there is nothing to draw. */
      readonly draw: (() => string) | undefined;
      /** 130, as of whatever ends by Ctrl-C. */
      readonly exitCode: 0 | 130;
    }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 2 };

export async function runLab(
  { study, seed, json }: LabCommand,
  { signal, terminal, surroundings }: Desk,
): Promise<LabReport> {
  const bar = terminal === undefined ? undefined : new ProgressBar(terminal);
  try {
    const experiment = makeStudy(study, seed, surroundings);
    const show = bar === undefined ? undefined : (progress: number) => bar.show(progress);
    const progress = await conduct(experiment, { show, signal, now: () => performance.now() });
    const told = experiment.result();
    const { isEmpty = false } = told;
    const isStopped = progress < 1;
    const remarks = [...(told.remarks ?? []), ...(isStopped ? [tellStop(progress, isEmpty)] : [])];
    return {
      kind: 'ran',
      text: json ? `${JSON.stringify(told.json)}\n` : isEmpty ? '' : told.text,
      remarks: remarks.map((line) => `${line}\n`).join(''),
      draw: isEmpty ? undefined : told.draw,
      exitCode: isStopped ? 130 : 0,
    };
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof StudyError)) throw error;
    return { kind: 'failed', message: error.message, exitCode: 2 };
  } finally {
    bar?.clear();
  }
}

function tellStop(progress: number, isEmpty: boolean): string {
  const what = isEmpty ? 'there is nothing to show yet' : 'this is what there is so far';
  return `tidegate: stopped at ${Math.floor(100 * progress)} %: ${what}`;
}
