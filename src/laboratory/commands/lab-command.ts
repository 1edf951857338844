/** `tidegate lab`: runs a study to its end, or until it is stopped. */
import type { ConfigEnvironment } from '../../config/load/substitute.ts';
import type { LabCommand } from './lab-arguments.ts';
import { runExperiment } from './run-experiment.ts';
import type { Terminal } from './progress-bar.ts';
import { ProgressBar } from './progress-bar.ts';
import { StudyError } from './study-error.ts';
import { makeStudy } from './make-study.ts';

/** What a long command needs of its terminal. */
export interface LabContext {
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  /** Draws the progress bar; undefined without a terminal. */
  readonly terminal: Terminal | undefined;
  readonly environment: ConfigEnvironment;
}

export type LabReport =
  | {
      readonly kind: 'ran';
      /** Text for standard output; each line ends with a newline. */
      readonly text: string;
      /** For standard error. */
      readonly remarks: string;
      /** Undefined if there is nothing to draw. */
      readonly draw: (() => string) | undefined;
      /** 130 if stopped by Ctrl-C. */
      readonly exitCode: 0 | 130;
    }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 2 };

export async function runLab(
  { study, seed, json }: LabCommand,
  { signal, terminal, environment }: LabContext,
): Promise<LabReport> {
  const bar = terminal === undefined ? undefined : new ProgressBar(terminal);
  try {
    const experiment = makeStudy(study, seed, environment);
    const onProgress = bar === undefined ? undefined : (progress: number) => bar.show(progress);
    const progress = await runExperiment(experiment, { onProgress, signal, now: () => performance.now() });
    const report = experiment.result();
    const { isEmpty = false } = report;
    const isStopped = progress < 1;
    const remarks = [...(report.remarks ?? []), ...(isStopped ? [formatStopped(progress, isEmpty)] : [])];
    return {
      kind: 'ran',
      text: json ? `${JSON.stringify(report.json)}\n` : isEmpty ? '' : report.text,
      remarks: remarks.map((line) => `${line}\n`).join(''),
      draw: isEmpty ? undefined : report.draw,
      exitCode: isStopped ? 130 : 0,
    };
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof StudyError)) throw error;
    return { kind: 'failed', message: error.message, exitCode: 2 };
  } finally {
    bar?.clear();
  }
}

function formatStopped(progress: number, isEmpty: boolean): string {
  const what = isEmpty ? 'no results yet' : 'these are the results so far';
  return `tidegate: stopped at ${Math.floor(100 * progress)} %: ${what}`;
}
