/** The tests of the commands and files in the documents: several test files share them, so that they run at the same time. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DocumentRunner } from './document-runner.ts';
import type { Mark, Snippet } from './snippets.ts';
import { readSnippets } from './snippets.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const documents = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)]
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, snippets: readSnippets(read(name)) }));

/**
 * The first steps, a signal to npm, output without npm's own, and the build. Elsewhere, `npm start` is only how to start the
 * program.
 */
const UNDER_NPM: ReadonlySet<string> = new Set(['README.md', 'docs/drains.md', 'docs/explain.md', 'docs/start.md']);

/** Shell commands, and snippets that commands need. */
const isTried = ({ language, marks }: Snippet): boolean => language === 'sh' || marks.length > 0;
const elsewhere = ({ marks }: Snippet): Mark | undefined =>
  marks.find(({ kind }) => kind === 'by' || kind === 'by hand');
const titleOf = ({ line, text }: Snippet): string => `line ${line}: ${text.split('\n')[0]}`;

/** Their commands end by themselves. Some compute for seconds, in all about as long as those of the other documents take. */
const WITHOUT_SERVER: ReadonlySet<string> = new Set([
  'docs/backoff.md',
  'docs/limits.md',
  'docs/migration.md',
  'docs/simulator.md',
  'docs/tuning.md',
]);

export function hasNoServer(document: string): boolean {
  return WITHOUT_SERVER.has(document);
}

/** Defines a test for each command and file of the documents that are chosen by name. */
export function tryDocuments(isChosen: (name: string) => boolean): void {
  const tried = documents
    .filter(({ name }) => isChosen(name))
    .map(({ name, snippets }) => ({ name, snippets: snippets.filter(isTried) }))
    .filter(({ snippets }) => snippets.length > 0);

  describe.each(tried)('the commands and files in $name', ({ name, snippets }) => {
    const here = snippets.filter((snippet) => elsewhere(snippet) === undefined);
    const others = snippets.filter((snippet) => elsewhere(snippet) !== undefined);
    let reader: DocumentRunner;

    beforeAll(async () => {
      reader = await DocumentRunner.open(here, { underNpm: UNDER_NPM.has(name) });
    });
    afterAll(() => reader.close());

    if (here.length > 0) {
      test.each(here.map((snippet) => ({ title: titleOf(snippet), snippet })))('$title', async ({ snippet }) => {
        await expect(reader.follow(snippet)).resolves.toBeUndefined();
      });
    }
    if (others.length > 0) {
      test.each(others.map((snippet) => ({ title: titleOf(snippet), snippet })))('$title', ({ snippet }) => {
        const untried = commandsOf(snippet).filter((command) => !isTriedBy(elsewhere(snippet), command, name));
        expect(untried).toEqual([]);
      });
    }
  });
}

const scripts = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts;
const ci = read('.ci/run');

/** Returns the commands without comments, with continued lines joined. */
function commandsOf({ text }: Snippet): string[] {
  const lines = text.replaceAll(/\\\n\s*/g, '').split('\n');
  return lines.map((line) => line.replace(/\s+#.*$/, '').trim()).filter((line) => line !== '');
}

/** Whether another test or the CI runs this command of a document. */
function isTriedBy(mark: Mark | undefined, command: string, document: string): boolean {
  if (mark?.kind === 'by hand') return mark.because.length > 10;
  if (mark?.kind !== 'by') return false;
  const script = /^npm run ([\w:]+)/.exec(command)?.[1];
  switch (mark.whom) {
    case 'bench':
      return script !== undefined && scripts[script] !== undefined && ci.includes(`npm run ${script} -- `);
    case 'containers':
      return (
        /^(docker|curl|sh docker\/)/.test(command) && namedFiles(command).every((file) => existsSync(join(ROOT, file)))
      );
    case 'ci':
      return command.split(' && ').every((part) => ci.includes(part));
    default:
      return existsSync(join(ROOT, mark.whom)) && read(mark.whom).includes(document);
  }
}

function namedFiles(command: string): string[] {
  return [...command.matchAll(/ -f (\S+)/g)].map(([, file]) => file ?? '');
}
