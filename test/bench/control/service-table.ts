import { over } from './judge.ts';
import type { Figure, ControlRow } from './rows/row.ts';
import type { Result } from './run-all.ts';
import type { ControlTable } from './table.ts';
import { familiesOf } from './tables.ts';

/** One line per row, one column per controller: the figures of a cell are means over the seeds. */
export function serviceTables(
  rows: readonly ControlRow[],
  results: readonly Result[],
  controllers: readonly string[],
): ControlTable[] {
  return familiesOf(rows).flatMap((family) => {
    const own = rows.filter((row) => row.family === family);
    return CELLS.map(({ title, figures }) => ({
      title: `${family}: ${title}`,
      head: ['', ...controllers],
      rows: own.map(({ name }) => [
        name,
        ...controllers.map((controller) =>
          cell(figures, results, (job) => job.row === name && job.controller === controller),
        ),
      ]),
    }));
  });
}

const CELLS: readonly { readonly title: string; readonly figures: readonly Figure[] }[] = [
  { title: 'goodput / p99 wait at the upstream / abandoned', figures: ['goodput', 'upstreamP99', 'abandoned'] },
  {
    title: 'refused / p50 wait at the upstream / p50 wait in all, more than the oracle',
    figures: ['refused', 'upstreamP50', 'overOracle'],
  },
];

function cell(figures: readonly Figure[], results: readonly Result[], isOwn: (job: Result['job']) => boolean): string {
  const seeds = results.filter(({ job }) => isOwn(job)).map((result) => result.figures);
  return figures
    .map((figure) => {
      const found = over(figure, seeds);
      return found === undefined ? '–' : shorten(figure, found.mean);
    })
    .join(' / ');
}

/** Whole milliseconds, and two digits of shares. */
function shorten(figure: Figure, mean: number): string {
  const isTime = figure === 'upstreamP50' || figure === 'upstreamP99' || figure === 'overOracle';
  return isTime ? String(Math.round(mean) + 0) : mean.toFixed(2);
}
