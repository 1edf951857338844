/** Writes the drawings of parts and arrows into docs/: `npm run draw:diagrams`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DIAGRAMS } from './diagrams.ts';
import { drawDiagram } from './draw-diagram.ts';

const DOCS = join(import.meta.dirname, '../../docs');

for (const [name, diagram] of Object.entries(DIAGRAMS)) writeFileSync(join(DOCS, `${name}.svg`), drawDiagram(diagram));
