import type { JudgedFigure, SeedStatistics } from './judge.ts';
import { judge, over } from './judge.ts';
import type { ControlFigures } from './measure.ts';
import type { Figure, ControlRow } from './rows/row.ts';
import { FAMILY_GOALS } from './rows.ts';
import type { Result } from './run-all.ts';
import type { ControlTable } from './table.ts';

/** Figures of runs by row, in the order of the rows. */
export type ByRow = ReadonlyMap<ControlRow, readonly ControlFigures[]>;

export function byRow(rows: readonly ControlRow[], results: readonly Result[], controller: string): ByRow {
  const found = new Map<ControlRow, ControlFigures[]>();
  for (const row of rows) {
    const figures = results
      .filter(({ job }) => job.controller === controller && job.row === row.name)
      .map((result) => result.figures);
    if (figures.length > 0) found.set(row, figures);
  }
  return found;
}

export function familiesOf(rows: readonly ControlRow[]): string[] {
  return [...new Set(rows.map(({ family }) => family))];
}

/** Rows of one controller: means over the seeds, with a different worst value in parentheses. */
export function rowTable(title: string, rows: ByRow): ControlTable {
  return {
    title,
    head: ['', ...COLUMNS.map(({ head }) => head), 'goals'],
    rows: [...rows].map(([row, seeds]) => [
      row.name,
      ...COLUMNS.map(({ figure }) => meanAndWorst(figure, seeds)),
      judge(row, seeds).map(sayJudged).join('; '),
    ]),
  };
}

export function ofFamily(rows: ByRow, family: string): ByRow {
  return new Map([...rows].filter(([row]) => row.family === family));
}

const COLUMNS: readonly { readonly head: string; readonly figure: Figure }[] = [
  { head: 'goodput', figure: 'goodput' },
  { head: 'waste', figure: 'waste' },
  { head: 'failures', figure: 'failures' },
  { head: 'added p50', figure: 'p50' },
  { head: 'added p99', figure: 'p99' },
  { head: 'oscillation', figure: 'oscillation' },
  { head: 'Jain', figure: 'jain' },
];

/** The goals of single rows, then those of families as a whole. */
export function judgeAll(rows: ByRow): { readonly name: string; readonly judged: JudgedFigure }[] {
  const found: { readonly name: string; readonly judged: JudgedFigure }[] = [];
  for (const [row, seeds] of rows) for (const judged of judge(row, seeds)) found.push({ name: row.name, judged });
  for (const { family, goal } of FAMILY_GOALS) {
    const all = [...ofFamily(rows, family).values()].flat();
    if (all.length === 0) continue;
    for (const judged of judge({ name: family, goals: [goal] }, [meanOf(all)])) {
      found.push({ name: `${family}, mean of all`, judged });
    }
  }
  return found;
}

/** Two figures of each family, for each controller. */
export function comparison(
  rows: readonly ControlRow[],
  results: readonly Result[],
  controllers: readonly string[],
): ControlTable {
  return {
    title: 'Goodput / waste',
    head: ['', ...controllers],
    rows: familiesOf(rows).map((family) => [
      family,
      ...controllers.map((controller) => {
        const own = rows.filter((row) => row.family === family);
        const all = figuresOf(own, results, controller);
        return all.length === 0
          ? ''
          : `${format('goodput', mean('goodput', all))} / ${format('waste', mean('waste', all))}`;
      }),
    ]),
  };
}

/** Additional figures of some families. */
const KEY_FIGURES: readonly (readonly [string, Figure, string])[] = [
  ['step to 40 %', 'settle', 'settled after'],
  ['step to 40 %', 'wastedOnStep', 'wasted in the 5 s after'],
  ['step x3', 'settle', 'settled after'],
  ['step x10', 'settle', 'settled after'],
  ['outage', 'calls', 'calls in its 10 s'],
  ['one client sends 100x', 'served', 'the others served'],
  ['one client sends 100x', 'p99', 'their added p99'],
  ['weights 4:1', 'share', 'share of the heavy (ideal: 0.8)'],
  ['ten equal clients', 'jain', 'Jain'],
  ['latency', 'p99', 'added p99'],
  ['steady', 'p99', 'added p99'],
  ['steady', 'failures', 'failures'],
  ['steady', 'jain', 'Jain'],
];

/** Whether a row belongs to a table's subject: a family, or a prefix of row names. */
export function isAbout({ name, family }: ControlRow, subject: string): boolean {
  return family === subject || name.startsWith(subject);
}

export function keyFigures(
  rows: readonly ControlRow[],
  results: readonly Result[],
  controllers: readonly string[],
): ControlTable {
  return {
    title: 'Other figures',
    head: ['', ...controllers],
    rows: KEY_FIGURES.filter(([subject]) => rows.some((row) => isAbout(row, subject))).map(
      ([subject, figure, title]) => [
        `${subject}: ${title}`,
        ...controllers.map((controller) => {
          const about = rows.filter((row) => isAbout(row, subject));
          const values = figuresOf(about, results, controller)
            .map((figures) => figures[figure])
            .filter((value) => value !== undefined);
          const finite = values.filter((value) => Number.isFinite(value));
          const never = values.length - finite.length;
          const average = finite.length === 0 ? '' : format(figure, finite.reduce((a, b) => a + b, 0) / finite.length);
          return never === 0 ? average : `${average} (${never} of ${values.length} never)`.trim();
        }),
      ],
    ),
  };
}

export function sayJudged({ goal, over: { mean: value, worst }, verdict, by }: JudgedFigure): string {
  const { figure, min, max } = goal;
  const bounds = [
    min === undefined ? '' : `≥ ${format(figure, min)}`,
    max === undefined ? '' : `≤ ${format(figure, max)}`,
  ];
  const result =
    verdict === 'missed' ? `MISSED by ${format(figure, by)}` : verdict === 'met' ? 'met' : 'met on average';
  return `${figure} ${withWorst(figure, { mean: value, worst })} ${bounds.filter(Boolean).join(', ')}: ${result}`;
}

export function format(figure: Figure, value: number): string {
  if (!Number.isFinite(value)) return figure === 'settle' ? 'never' : '∞';
  switch (figure) {
    case 'settle':
      return `${(value / 1000).toFixed(1)} s`;
    case 'p50':
    case 'p99':
    case 'upstreamP50':
    case 'upstreamP99':
    case 'overOracle':
      return `${value.toFixed(0)} ms`;
    case 'calls':
    case 'wastedOnStep':
      return value.toFixed(0);
    case 'waste':
    case 'failures':
    case 'refused':
    case 'abandoned':
      return value >= 0.1 ? value.toFixed(2) : value.toFixed(4);
    case 'goodput':
    case 'ofOracle':
    case 'served':
    case 'share':
    case 'jain':
    case 'addedOfOracle':
    case 'oscillation':
      return value.toFixed(3);
  }
}

function figuresOf(rows: readonly ControlRow[], results: readonly Result[], controller: string): ControlFigures[] {
  const names = new Set(rows.map(({ name }) => name));
  return results.filter(({ job }) => job.controller === controller && names.has(job.row)).map(({ figures }) => figures);
}

function meanAndWorst(figure: Figure, seeds: readonly ControlFigures[]): string {
  const found = over(figure, seeds);
  return found === undefined ? '' : withWorst(figure, found);
}

function withWorst(figure: Figure, { mean: value, worst }: SeedStatistics): string {
  const mean = format(figure, value);
  const ofWorst = format(figure, worst);
  return mean === ofWorst ? mean : `${mean} (${ofWorst})`;
}

function mean(figure: Figure, all: readonly ControlFigures[]): number {
  return over(figure, all)?.mean ?? Number.NaN;
}

function meanOf(all: readonly ControlFigures[]): ControlFigures {
  return { goodput: mean('goodput', all), waste: mean('waste', all) };
}
