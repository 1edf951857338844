import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { MutantResult } from '@stryker-mutator/api/core';

/** The share of valid mutants that the tests noticed, in percent. A mutant that runs forever is noticed. */
export function scoreOf(mutants: readonly MutantResult[]): number {
  const { noticed, missed } = count(mutants);
  return (100 * noticed) / (noticed + missed);
}

export function formatScore(name: string, mutants: readonly MutantResult[]): string {
  const { noticed, missed } = count(mutants);
  return `${name}: ${scoreOf(mutants).toFixed(1)} % (${noticed} of ${noticed + missed} mutants noticed)`;
}

/** The score, and each mutant that no test noticed: its place, and the code before and after. */
export function formatReport(name: string, mutants: readonly MutantResult[]): string {
  const missed = mutants.filter(isMissed).toSorted(byPlace);
  const lines = missed.map((mutant) => {
    const { line, column } = mutant.location.start;
    const place = `${relative('.', mutant.fileName)}:${line}:${column}`;
    const note = mutant.status === 'NoCoverage' ? ' (no test runs it)' : '';
    return `${place} ${mutant.mutatorName}${note}\n  - ${codeOf(mutant)}\n  + ${flatten(mutant.replacement ?? '')}`;
  });
  return `${[formatScore(name, mutants), ...lines].join('\n\n')}\n`;
}

function count(mutants: readonly MutantResult[]): { noticed: number; missed: number } {
  const noticed = mutants.filter(({ status }) => status === 'Killed' || status === 'Timeout').length;
  return { noticed, missed: mutants.filter(isMissed).length };
}

function isMissed({ status }: MutantResult): boolean {
  return status === 'Survived' || status === 'NoCoverage';
}

function byPlace(a: MutantResult, b: MutantResult): number {
  const { start } = a.location;
  return (
    a.fileName.localeCompare(b.fileName) || start.line - b.location.start.line || start.column - b.location.start.column
  );
}

function codeOf({ fileName, location: { start, end } }: MutantResult): string {
  const lines = readFileSync(fileName, 'utf8')
    .split('\n')
    .slice(start.line - 1, end.line);
  lines[lines.length - 1] = (lines.at(-1) ?? '').slice(0, end.column - 1);
  lines[0] = (lines[0] ?? '').slice(start.column - 1);
  return flatten(lines.join('\n'));
}

function flatten(code: string): string {
  const flat = code.replaceAll(/\s+/g, ' ');
  return flat.length > 160 ? `${flat.slice(0, 160)}…` : flat;
}
