import { OURS } from './controllers.ts';
import type { ControlFigures } from './measure.ts';
import type { Figure, ControlRow } from './rows/row.ts';
import type { Result } from './run-all.ts';
import type { ControlTable } from './table.ts';
import { byRow, familiesOf, isAbout, judgeAll } from './tables.ts';

/** A run of Tidegate, and the same run without one rule. */
interface Pair {
  readonly row: ControlRow;
  readonly ours: ControlFigures;
  readonly without: ControlFigures;
}

/** Changes without each rule, by family: goodput and waste in thousandths. */
export function changeTable(
  rows: readonly ControlRow[],
  results: readonly Result[],
  controllers: readonly string[],
): ControlTable {
  const families = familiesOf(rows);
  return {
    title: 'Change of goodput / waste, in thousandths',
    head: ['without', ...families, 'goals missed'],
    rows: controllers.map((name) => {
      const pairs = pairUp(rows, results, name);
      return [
        name,
        ...families.map((family) => {
          const own = pairs.filter(({ row }) => row.family === family);
          return `${signed(1000 * change(own, 'goodput'))} / ${signed(1000 * change(own, 'waste'))}`;
        }),
        `${missed(rows, results, name) - missed(rows, results, OURS.name)}`,
      ];
    }),
    note: 'Goals missed: the number beyond those that the unchanged rules miss.',
  };
}

const CHANGES: readonly (readonly [string, Figure, string, number])[] = [
  ['step to 40 %', 'settle', 's', 1000],
  ['step to 40 %', 'wastedOnStep', 'wasted', 1],
  ['step x3', 'settle', 's', 1000],
  ['step x10', 'settle', 's', 1000],
  ['outage', 'settle', 's', 1000],
  ['outage', 'calls', 'calls', 1],
  ['one client sends 100x', 'served', '‰ served', 0.001],
  ['one client sends 100x', 'p99', 'ms p99', 1],
  ['weights', 'share', '‰ share', 0.001],
  ['ten equal', 'jain', '‰ Jain', 0.001],
  ['steady', 'p99', 'ms p99', 1],
];

/** Changes of other figures that some rows focus on. */
export function otherChangeTable(
  rows: readonly ControlRow[],
  results: readonly Result[],
  controllers: readonly string[],
): ControlTable {
  const shown = CHANGES.filter(([subject]) => rows.some((row) => isAbout(row, subject)));
  return {
    title: 'Change of other figures',
    head: ['without', ...shown.map(([subject, , unit]) => `${subject}: ${unit}`)],
    rows: controllers.map((name) => {
      const pairs = pairUp(rows, results, name);
      return [
        name,
        ...shown.map(([subject, figure, , unit]) => {
          const own = pairs.filter(({ row }) => isAbout(row, subject));
          return signed(change(own, figure) / unit);
        }),
      ];
    }),
  };
}

function pairUp(rows: readonly ControlRow[], results: readonly Result[], controller: string): Pair[] {
  const pairs: Pair[] = [];
  for (const { job, figures } of results) {
    const row = rows.find(({ name }) => name === job.row);
    const ours = results.find(
      (other) => other.job.controller === OURS.name && other.job.row === job.row && other.job.seed === job.seed,
    );
    if (job.controller === controller && row !== undefined && ours !== undefined) {
      pairs.push({ row, ours: ours.figures, without: figures });
    }
  }
  return pairs;
}

/** Returns the mean change; ∞ if the figure is never reached without the rule. */
function change(pairs: readonly Pair[], figure: Figure): number {
  const changes = pairs.map(({ ours, without }) => (without[figure] ?? 0) - (ours[figure] ?? 0));
  return changes.reduce((sum, each) => sum + each, 0) / Math.max(1, changes.length);
}

function missed(rows: readonly ControlRow[], results: readonly Result[], controller: string): number {
  return judgeAll(byRow(rows, results, controller)).filter(({ judged }) => judged.verdict === 'missed').length;
}

function signed(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '?';
  const text = Math.abs(value) >= 10 ? value.toFixed(0) : value.toFixed(1);
  if (Number(text) === 0) return '0';
  return value > 0 ? `+${text}` : text.replace('-', '−');
}
