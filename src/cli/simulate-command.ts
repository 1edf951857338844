/** `tidegate simulate`: finds the scenario, runs it, and says what came of it. Text from options; nothing is printed here. */
import { loadScenario } from '../simulator/scenario-file/load-scenario.ts';
import { formatMistakes, formatWarnings } from '../config/load/mistakes.ts';
import { unreadable } from '../config/load/serve-settings.ts';
import type { Surroundings } from '../config/load/substitute.ts';
import { suggest } from '../config/values/suggest.ts';
import { drawReport } from '../simulator/report/draw-report.ts';
import { simulate } from '../simulator/simulate-scenario.ts';
import { scenarioFile, scenarioNames } from './bundled-scenarios.ts';
import { renderReport } from './render-simulation-report.ts';

export interface SimulateOptions {
  /** A file, or the name of a scenario of the library. */
  readonly scenario: string;
  readonly seed: number | undefined;
  readonly json: boolean;
  readonly check: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}

export type SimulateReport =
  | {
      readonly kind: 'ran';
      /** Lines, each ended by a newline. */
      readonly text: string;
      /** For standard error: warnings, and goals that were missed under `--check`. */
      readonly remarks: string;
      /** For `--svg`. */
      readonly draw: () => string;
      readonly exitCode: 0 | 1;
    }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 1 | 2 };

export function runSimulate(options: SimulateOptions, surroundings: Surroundings): SimulateReport {
  const { scenario, seed, json, check, width } = options;
  const found = find(scenario);
  if ('message' in found) return { kind: 'failed', ...found, exitCode: 2 };
  const { name, file } = found;
  let text: string;
  try {
    text = surroundings.readFile(file);
  } catch (error) {
    return { kind: 'failed', message: formatMistakes([unreadable(file, error)]), exitCode: 1 };
  }
  const read = loadScenario(text, file, surroundings);
  if (read.kind === 'mistakes') return { kind: 'failed', message: formatMistakes(read.mistakes), exitCode: 1 };
  const { title, warmup } = read.value;
  const { report, goals } = simulate(name, read.value, seed);
  const missed = check ? goals.filter(({ met }) => !met) : [];
  const remarks = [
    ...(read.warnings.length === 0 ? [] : [formatWarnings(read.warnings)]),
    ...(missed.length === 0 ? [] : [`tidegate: goals missed: ${missed.map(({ goal }) => goal).join(', ')}`]),
  ];
  return {
    kind: 'ran',
    text: json ? `${JSON.stringify({ ...report, goals })}\n` : renderReport({ title, report, goals }, width),
    remarks: remarks.map((line) => `${line}\n`).join(''),
    draw: () => drawReport(title === undefined ? name : `${name}: ${title}`, report, warmup),
    exitCode: missed.length === 0 ? 0 : 1,
  };
}

type Found = { readonly name: string; readonly file: string } | { readonly message: string };

function find(word: string): Found {
  if (scenarioNames().includes(word)) return { name: word, file: scenarioFile(word) };
  if (/[./\\]/.test(word)) return { name: word, file: word };
  const near = suggest(word, scenarioNames());
  return {
    message: `no scenario is called '${word}'${near === undefined ? '; tidegate simulate --list tells which there are' : ` (did you mean ${near}?)`}`,
  };
}
