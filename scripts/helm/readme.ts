import type { ChartValue, ValueSection } from './chart-values.ts';

/**
 * Fills in the README: `<!-- values -->` becomes the tables of values, and `<!-- file: PATH -->` a file of the chart. `read` returns
 * the text of a file.
 */
export function writeReadme(text: string, sections: readonly ValueSection[], read: (file: string) => string): string {
  return text
    .replace('<!-- values -->', () => sections.map(tableOf).join('\n\n'))
    .replaceAll(/<!-- file: (\S+) -->/g, (_, file: string) => `\`\`\`yaml\n${read(file)}\`\`\``);
}

function tableOf({ title, values }: ValueSection): string {
  const rows = values.flatMap((value) => rowsOf(value, ''));
  return [`### ${title}`, '', '| value | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

function rowsOf(value: ChartValue, prefix: string): string[] {
  const path = `${prefix}${value.name}`;
  if (value.kind === 'group') return value.values.flatMap((inner) => rowsOf(inner, `${path}.`));
  const type = value.type.replaceAll(' | ', ' or ');
  return [`| \`${path}\` | ${type} | ${formatDefault(value.default)} | ${value.description}. |`];
}

function formatDefault(value: unknown): string {
  return value === '' ? '' : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}
