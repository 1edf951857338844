import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drawBackoffs } from '../../../src/cli/backoff/draw-backoffs.ts';
import { type BackOffSpec, makeBackOff, strategies, strategyNames } from '../../../src/core/backoff/strategies.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const document = readFileSync(join(DOCS, 'backoff.md'), 'utf8');

// `npm run draw:commands` redraws them.
test.each(strategyNames)('the document describes %s, and shows the current drawing', (strategy) => {
  expect(document).toContain(`### ${strategy}\n`);
  expect(document).toContain(strategies[strategy].formula);
  expect(document).toContain(`](backoff/${strategy}.svg)`);
  const [, section = ''] = document.split(`### ${strategy}\n`);
  const text = section.slice(0, section.search(/^##/m)).replaceAll(/\s+/g, ' ');
  expect(text).toContain('*Use it:*');
  expect(text).toContain(`*Source:* ${strategies[strategy].source}`);
  const drawn = readFileSync(join(DOCS, `backoff/${strategy}.svg`), 'utf8');
  expect(drawn).toBe(drawBackoffs([makeBackOff({ strategy })], undefined));
});

const draw = (...specs: readonly BackOffSpec[]): string => drawBackoffs(specs.map(makeBackOff), undefined);

test('a drawing of all strategies has room for every name', () => {
  const drawn = draw(...strategyNames.map((strategy) => ({ strategy })));
  const height = Number(/ height="(\d+)"/.exec(drawn)?.[1]);
  for (const strategy of strategyNames) {
    const place = new RegExp(`y="(\\d+)">${strategy}</text>`).exec(drawn)?.[1];
    expect(Number(place), strategy).toBeLessThan(height);
  }
});

test('the lines of a drawing differ, however many there are', () => {
  const drawn = draw(...strategyNames.map((strategy) => ({ strategy })));
  const looks = [...drawn.matchAll(/<path ([^>]+) d="M\d+ \d+h22"/g)].map(([, look]) => look);
  expect(looks).toHaveLength(strategyNames.length);
  expect(new Set(looks).size).toBe(strategyNames.length);
});

test('a mean wait is drawn at its position, however much longer others are', () => {
  const drawn = draw({ strategy: 'ethernet' }, { strategy: 'grpc' });
  const [heights = []] = [...drawn.matchAll(/<path class="c0" d="(M[^h"]+)"/g)].map(([, path = '']) =>
    path.slice(1).split('L').slice(0, 10),
  );
  expect(heights).toHaveLength(10);
  expect(new Set(heights.map((at) => at.split(' ')[1])).size).toBe(10);
});
