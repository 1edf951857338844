/** Columns that are as wide as what is in them: the first to the left, figures to the right. Lines without a newline. */
export function layTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((cell, i) => Math.max(cell.length, ...rows.map((row) => row[i]?.length ?? 0)));
  return [head, ...rows].map((row) =>
    `  ${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ')}`.trimEnd(),
  );
}

/** Lines as text. */
export function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** A bar as long as its part of the whole. */
export function bar(part: number, width: number): string {
  const columns = Math.round(Math.min(1, Math.max(0, part)) * width);
  return columns === 0 && part > 0 ? '▏' : '█'.repeat(columns);
}

/** "1 user", "2 users". */
export function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
