/** Reads values.yaml of the chart with its comments. They describe each value, for its schema and for the README. */
import type { Node, YAMLMap } from 'yaml';
import { isMap, isNode, isScalar, parseDocument } from 'yaml';

/** A value that users set, or a group of them. */
export type ChartValue = ValueGroup | DescribedValue;

export interface ValueGroup {
  readonly kind: 'group';
  readonly name: string;
  readonly values: readonly ChartValue[];
}

export interface DescribedValue {
  readonly kind: 'value';
  readonly name: string;
  /** As in its comment, such as `map of strings`; otherwise that of its default. */
  readonly type: string;
  readonly description: string;
  readonly default: unknown;
}

export interface ValueSection {
  readonly title: string;
  readonly values: readonly ChartValue[];
}

/** Parses values.yaml. Throws an error that names the value if one has no description, or none of a section. */
export function parseChartValues(text: string): readonly ValueSection[] {
  const document = parseDocument(text);
  if (!isMap(document.contents)) throw new Error('values.yaml: a mapping was expected');
  const sections: { title: string; values: ChartValue[] }[] = [];
  for (const entry of entriesOf(document.contents, document.commentBefore ?? '')) {
    const title = /^ ?# (.+)$/m.exec(entry.comment)?.[1];
    if (title !== undefined) sections.push({ title, values: [] });
    const section = sections.at(-1);
    if (section === undefined) throw new Error(`values.yaml: ${entry.name} is in no section`);
    section.values.push(readValue(entry, []));
  }
  return sections;
}

interface ValueEntry {
  readonly name: string;
  readonly value: Node;
  readonly comment: string;
}

function readValue({ name, value, comment }: ValueEntry, path: readonly string[]): ChartValue {
  const place = [...path, name];
  const [, type, description] = /^ ?-- (?:\(([^)]+)\) )?(.+)$/m.exec(comment) ?? [];
  if (description === undefined) {
    if (!isMap(value)) throw new Error(`values.yaml: ${place.join('.')} has no description`);
    return { kind: 'group', name, values: entriesOf(value, '').map((entry) => readValue(entry, place)) };
  }
  const content: unknown = value.toJSON();
  return { kind: 'value', name, type: type ?? typeOf(content, place), description, default: content };
}

/** The parser attaches the comment of the first key to the mapping, or to the document. */
function entriesOf(map: YAMLMap, before: string): readonly ValueEntry[] {
  return map.items.map(({ key, value }, i) => {
    if (!isScalar(key) || !isNode(value)) throw new Error('values.yaml: a key with a value was expected');
    const outer = i === 0 ? [before, map.commentBefore ?? ''] : [];
    return { name: String(key.value), value, comment: [...outer, key.commentBefore ?? ''].join('\n') };
  });
}

function typeOf(value: unknown, place: readonly string[]): string {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return typeof value;
    case 'number':
      return 'integer';
    default:
      throw new Error(`values.yaml: the description of ${place.join('.')} has to begin with a type in parentheses`);
  }
}
