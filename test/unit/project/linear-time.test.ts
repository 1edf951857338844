/** No text from outside may take more than linear time to read, because one request must not block a process. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';
import { expect, test } from 'vitest';
import { isFarFromQuadratic, longText } from '../../support/linear-time.ts';

const source = fileURLToPath(new URL('../../../src/', import.meta.url));

interface RegexLiteral {
  readonly file: string;
  readonly pattern: string;
  readonly flags: string;
}

function findRegexLiterals(file: string): RegexLiteral[] {
  const found: RegexLiteral[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node !== 'object' || node === null || node instanceof RegExp) return;
    if ('regex' in node && isRegex(node.regex)) found.push({ file, ...node.regex });
    Object.values(node).forEach(visit);
  };
  visit(parseAst(readFileSync(join(source, file), 'utf8'), { lang: file.endsWith('.ts') ? 'ts' : 'js' }));
  return found;
}

function isRegex(value: unknown): value is { readonly pattern: string; readonly flags: string } {
  return typeof value === 'object' && value !== null && 'pattern' in value && 'flags' in value;
}

const CLASS_SAMPLES: Readonly<Record<string, string>> = { d: '0', s: ' ', w: 'a', t: '\t', n: '\n', r: '\r' };

/** Literal pieces of a pattern: what it must find before, between and after what it repeats. */
function literalsOf(pattern: string): string[] {
  const plain = pattern.replaceAll(/\\(.)/g, (_, character: string) => CLASS_SAMPLES[character] ?? character);
  const runs = [...pattern.matchAll(/(?:\\[^\w]|[\w ,;:="/@<>-])+/g)].map(([run]) => run.replaceAll(/\\(.)/g, '$1'));
  return [...new Set([...plain.split(''), ...runs, ' ', 'a', '0', ',', '{$', 'a ', 'a,', 'a.'])].filter(
    (text) => text !== '?',
  );
}

/** Texts that make a pattern with overlapping repetitions search again at each position. */
function* attacksOn(pattern: string): Generator<string> {
  const literals = literalsOf(pattern);
  const longer = literals.filter((literal) => literal.length > 1).slice(0, 4);
  const prefixes = new Set(['', 'a', '0', 'http://', ...longer, longer.join('')]);
  for (const prefix of prefixes) for (const pump of literals) yield longText(prefix, pump, '\0');
}

test('every regular expression takes linear time, whatever the text', { timeout: 180_000 }, () => {
  const literals = globSync('**/*.{ts,js}', { cwd: source }).flatMap(findRegexLiterals);
  expect(literals.length).toBeGreaterThan(200);
  const slow = literals.filter(({ pattern, flags }) => {
    // A sticky one is tried at one position only, the others at each position, as `replaceAll` does.
    const isSticky = flags.includes('y');
    const regex = new RegExp(pattern, isSticky || flags.includes('g') ? flags : `${flags}g`);
    for (const text of attacksOn(pattern)) if (!isFarFromQuadratic(() => void text.replace(regex, ''))) return true;
    return false;
  });
  expect(slow).toEqual([]);
});
