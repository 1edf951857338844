/** The drawings of docs/ that simulations and experiments make are those of the present sources. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawRule } from '../bench/control/draw-rule.ts';
import { DRAWN_RULES } from '../bench/control/drawn-rules.ts';
import { COMMAND_DRAWINGS, drawByCommand } from '../support/documents/command-drawings.ts';

/** Compared as a boolean, because a difference of two drawings is thousands of characters long. */
function isCurrent(name: string, drawing: string): boolean {
  return readFileSync(join(import.meta.dirname, `../../docs/${name}.svg`), 'utf8') === drawing;
}

test.each(DRAWN_RULES)('docs/control/$rule.svg is current: npm run draw:control', (drawn) => {
  expect(isCurrent(`control/${drawn.rule}`, drawRule(drawn))).toBe(true);
});

test.each(Object.entries(COMMAND_DRAWINGS))('docs/%s.svg is current: npm run draw:commands', async (name, line) => {
  expect(isCurrent(name, await drawByCommand(line))).toBe(true);
});
