import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DocumentRunner } from '../../support/documents/document-runner.ts';
import type { Mark, Snippet } from '../../support/documents/snippets.ts';
import { readSnippets } from '../../support/documents/snippets.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const documents = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)]
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, snippets: readSnippets(read(name)) }));

/** Shell commands, and snippets that commands need. */
const isTried = ({ language, marks }: Snippet): boolean => language === 'sh' || marks.length > 0;
const elsewhere = ({ marks }: Snippet): Mark | undefined =>
  marks.find(({ kind }) => kind === 'by' || kind === 'by hand');
const titleOf = ({ line, text }: Snippet): string => `line ${line}: ${text.split('\n')[0]}`;

const tried = documents
  .map(({ name, snippets }) => ({ name, snippets: snippets.filter(isTried) }))
  .filter(({ snippets }) => snippets.length > 0);

describe.each(tried)('the commands and files in $name', ({ name, snippets }) => {
  const here = snippets.filter((snippet) => elsewhere(snippet) === undefined);
  const others = snippets.filter((snippet) => elsewhere(snippet) !== undefined);
  let reader: DocumentRunner;

  beforeAll(async () => {
    reader = await DocumentRunner.open(here);
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
