/** `tidegate simulate`: finds the scenario, runs it and renders the report. Returns text; prints nothing. */
import { loadScenario } from '../simulator/scenario-file/load-scenario.ts';
import { formatMistakes, formatWarnings } from '../config/load/mistakes.ts';
import { unreadableFile } from '../config/load/serve-settings.ts';
import type { ConfigEnvironment } from '../config/load/substitute.ts';
import { suggest } from '../config/values/suggest.ts';
import { drawReport } from '../simulator/report/draw-report.ts';
import { simulateScenario } from '../simulator/simulate-scenario.ts';
import { scenarioFile, scenarioNames } from './bundled-scenarios.ts';
import { renderSimulationReport } from './render-simulation-report.ts';

export interface SimulateCommandOptions {
  /** A file, or the name of a bundled scenario. */
  readonly scenario: string;
  readonly seed: number | undefined;
  readonly json: boolean;
  readonly check: boolean;
  /** Columns of the terminal. */
  readonly width: number;
}

export type SimulateCommandResult =
  | {
      readonly kind: 'ran';
      /** Lines, each with a newline. */
      readonly text: string;
      /** For standard error: warnings, and goals that were missed under `--check`. */
      readonly remarks: string;
      /** For `--svg`. */
      readonly draw: () => string;
      readonly exitCode: 0 | 1;
    }
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 1 | 2 };

export function runSimulate(options: SimulateCommandOptions, environment: ConfigEnvironment): SimulateCommandResult {
  const { scenario, seed, json, check, width } = options;
  const found = findScenario(scenario);
  if ('message' in found) return { kind: 'failed', ...found, exitCode: 2 };
  const { name, file } = found;
  let text: string;
  try {
    text = environment.readFile(file);
  } catch (error) {
    return { kind: 'failed', message: formatMistakes([unreadableFile(file, error)]), exitCode: 1 };
  }
  const read = loadScenario(text, file, environment);
  if (read.kind === 'mistakes') return { kind: 'failed', message: formatMistakes(read.mistakes), exitCode: 1 };
  const { title, warmup } = read.value;
  const { report, goals } = simulateScenario(name, read.value, seed);
  const missed = check ? goals.filter(({ met }) => !met) : [];
  const remarks = [
    ...(read.warnings.length === 0 ? [] : [formatWarnings(read.warnings)]),
    ...(missed.length === 0 ? [] : [`tidegate: goals missed: ${missed.map(({ goal }) => goal).join(', ')}`]),
  ];
  return {
    kind: 'ran',
    text: json ? `${JSON.stringify({ ...report, goals })}\n` : renderSimulationReport({ title, report, goals }, width),
    remarks: remarks.map((line) => `${line}\n`).join(''),
    draw: () => drawReport(title === undefined ? name : `${name}: ${title}`, report, warmup),
    exitCode: missed.length === 0 ? 0 : 1,
  };
}

type FoundScenario = { readonly name: string; readonly file: string } | { readonly message: string };

function findScenario(word: string): FoundScenario {
  if (scenarioNames().includes(word)) return { name: word, file: scenarioFile(word) };
  if (/[./\\]/.test(word)) return { name: word, file: word };
  const near = suggest(word, scenarioNames());
  return {
    message: `no scenario is called '${word}'${near === undefined ? '; simulate --list shows the scenarios' : ` (did you mean ${near}?)`}`,
  };
}
