/** Each picture of docs/ has a command that draws it again. test/slow/drawings.test.ts has those that take longer. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DIAGRAMS } from '../../../scripts/diagrams/diagrams.ts';
import { drawDiagram } from '../../../scripts/diagrams/draw-diagram.ts';
import { strategyNames } from '../../../src/core/backoff/strategies.ts';
import { DRAWN_RULES } from '../../bench/control/drawn-rules.ts';
import { COMMAND_DRAWINGS } from '../../support/documents/command-drawings.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PAGE_VIEWS = ['dark', 'light', 'phone'];

test('each picture is one that an npm script draws', () => {
  const pictures = globSync(['*.{svg,png}', '{backoff,control}/*.{svg,png}'], { cwd: join(ROOT, 'docs') });
  const svg = [
    ...Object.keys(DIAGRAMS),
    ...Object.keys(COMMAND_DRAWINGS),
    ...strategyNames.map((name) => `backoff/${name}`),
    ...DRAWN_RULES.map(({ rule }) => `control/${rule}`),
  ];
  const drawn = [...svg.map((name) => `${name}.svg`), ...PAGE_VIEWS.map((view) => `page-${view}.png`)];
  expect(pictures.map((path) => path.replaceAll('\\', '/')).toSorted()).toEqual(drawn.toSorted());
});

test('npm run draw runs the script of each kind', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const parts = Object.keys(scripts).filter((name) => name.startsWith('draw:'));
  expect(scripts['draw']).toBe(parts.map((name) => `npm run ${name}`).join(' && '));
});

test.each(Object.entries(DIAGRAMS))('docs/%s.svg is current: npm run draw:diagrams', (name, diagram) => {
  expect(readFileSync(join(ROOT, `docs/${name}.svg`), 'utf8')).toBe(drawDiagram(diagram));
});

test('diagrams name files that exist', () => {
  const notes = Object.values(DIAGRAMS).flatMap(({ boxes }) => boxes.flatMap((box) => box.notes ?? []));
  const files = notes.filter((note) => note.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => !existsSync(join(ROOT, 'src', file)))).toEqual([]);
});
