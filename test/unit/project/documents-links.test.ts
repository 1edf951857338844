import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const documents = ['', '.github', 'docs'].flatMap((folder) =>
  readdirSync(join(root, folder)).map((name) => join(folder, name)),
);
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Link targets: headings, with the identifiers that GitHub gives them. */
function anchorsOf(file: string): Set<string> {
  const headings = read(file)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .matchAll(/^#+ (.+)$/gm);
  return new Set(
    Array.from(headings, ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe.each(documents.filter((name) => name.endsWith('.md')))('%s', (file) => {
  test('has only links that resolve', () => {
    const links = read(file).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g);
    const broken = Array.from(links).flatMap(([, path = '', anchor]) => {
      const target = path === '' ? file : join(dirname(file), path);
      if (!existsSync(join(root, target))) return [target];
      return anchor === undefined || anchorsOf(target).has(anchor) ? [] : [`${target}#${anchor}`];
    });
    expect(broken).toEqual([]);
  });
});
