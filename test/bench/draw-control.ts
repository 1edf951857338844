/**
 * Draws the effect of each rule of the adaptive rate: a bundled scenario with the rule and without it.
 *
 *     npm run draw:control                       writes docs/control/*.svg
 *     npm run draw:control -- --only reopen      some of them
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { drawRule } from './control/draw-rule.ts';
import { DRAWN_RULES } from './control/drawn-rules.ts';

const { values } = parseArgs({
  options: { only: { type: 'string', default: '.' }, out: { type: 'string', default: 'docs/control' } },
});
const wanted = new RegExp(values.only);

for (const drawn of DRAWN_RULES.filter(({ rule }) => wanted.test(rule))) {
  const file = `${values.out}/${drawn.rule}.svg`;
  writeFileSync(file, drawRule(drawn));
  console.log(file);
}
