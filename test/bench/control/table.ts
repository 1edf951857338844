export interface ControlTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Explains how to read the table. */
  readonly note?: string;
}

/** Formats the table for a terminal. */
export function toText({ title, head, rows, note }: ControlTable): string {
  const widths = head.map((cell, i) => Math.max(cell.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return [title, ...(note === undefined ? [] : [note]), line(head), ...rows.map(line), ''].join('\n');
}

/** Formats the table for a document, below a third-level heading. */
export function toMarkdown({ title, head, rows, note }: ControlTable): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = line(head.map((_, i) => (i === 0 ? '---' : '---:')));
  return [`### ${title}`, '', ...(note === undefined ? [] : [note, '']), line(head), rule, ...rows.map(line), ''].join(
    '\n',
  );
}
