import type { ErrorCode, YAMLError } from 'yaml';
import type { Mistake } from './mistakes.ts';
import type { SourceMap } from './source-map.ts';
import type { IndentationMistake } from './yaml-indentation.ts';
import { findLineBelowValue, findUnalignedLine } from './yaml-indentation.ts';

/** The messages of yaml itself repeat the text at fault, which may be a secret. */
const MESSAGES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'not the name of an anchor',
  BAD_COLLECTION_TYPE: 'a tag that does not match its value',
  BAD_DIRECTIVE: 'an unknown directive',
  BAD_DQ_ESCAPE: 'an unknown escape in double quotes',
  BAD_INDENT: 'not indented enough, or a quote or bracket before it is not closed',
  BAD_PROP_ORDER: 'an anchor or a tag in the wrong place',
  BAD_SCALAR_START: 'text that starts with this character needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second mapping or list on the line of the first: quote the text, or start a new line',
  BLOCK_IN_FLOW: 'a block within brackets or braces',
  DUPLICATE_KEY: 'written twice',
  IMPOSSIBLE: 'not YAML',
  KEY_OVER_1024_CHARS: 'a key of more than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, colon, comma or space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key of more than one line',
  MULTIPLE_ANCHORS: 'more than one anchor',
  MULTIPLE_DOCS: 'a second document: a configuration is a single document',
  MULTIPLE_TAGS: 'more than one tag',
  NON_STRING_KEY: 'a key must be plain text',
  RESOURCE_EXHAUSTION: 'nested too deeply',
  TAB_AS_INDENT: 'a tab: indent with spaces',
  TAG_RESOLVE_FAILED: 'a tag that is not supported here',
  UNEXPECTED_TOKEN: 'not expected here: a quote, bracket or line break may be missing before it',
};

/** The errors of the YAML parser as mistakes. After an unexpected token, later errors are only consequences, and are dropped. */
export function describeYamlErrors(errors: readonly YAMLError[], text: string, sourceMap: SourceMap): Mistake[] {
  const firstUnexpected = errors.findIndex(({ code }) => code === 'UNEXPECTED_TOKEN');
  const relevant = firstUnexpected < 0 ? errors : errors.slice(0, firstUnexpected + 1);
  const firstAtOffset = new Map(relevant.toReversed().map((error) => [error.pos[0], error]));
  const mistakes = [...firstAtOffset.values()].toReversed().map(({ code, pos: [offset] }) => {
    const indentation = findIndentationMistake(code, text, offset);
    return {
      ...sourceMap.positionAt(indentation?.offset ?? offset),
      path: '',
      message: `not YAML: ${indentation === undefined ? MESSAGES[code] : WRONG_INDENTATION}`,
      suggestion: indentation?.suggestion ?? suggestQuotes(text, offset),
    };
  });
  // One line that is indented wrongly can cause several errors.
  return [
    ...new Map(mistakes.map((mistake) => [`${mistake.line}:${mistake.column} ${mistake.message}`, mistake])).values(),
  ];
}

const WRONG_INDENTATION = 'the indentation of this line matches no line above it';

function findIndentationMistake(code: ErrorCode, text: string, offset: number): IndentationMistake | undefined {
  switch (code) {
    case 'BAD_INDENT':
    case 'MISSING_CHAR':
      return findUnalignedLine(text, offset);
    case 'BLOCK_AS_IMPLICIT_KEY':
      return findLineBelowValue(text, offset);
    default:
      return undefined;
  }
}

/** Characters searched on either side of the error, for very long lines. */
const CONTEXT_CHARS = 200;

/** Suggests quotes for text that YAML reads as a collection: `[::]:8080`, and `${NAME}` within brackets or braces. */
function suggestQuotes(text: string, offset: number): string | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const end = text.indexOf('\n', offset);
  const line = text.slice(
    Math.max(start, offset - CONTEXT_CHARS),
    Math.min(end < 0 ? text.length : end, offset + CONTEXT_CHARS),
  );
  const listen = /(?<!["'\w])\[[0-9A-Fa-f:]*\]:\d+/.exec(line)?.[0];
  if (listen !== undefined) return `"${listen}"`;
  const reference = /^[^{[]*[{[].*?(?<!["'])(\$\{(?:\w+|file:[\w./-]+)\})(?!["'])/.exec(line)?.[1];
  return reference === undefined ? undefined : `"${reference}"`;
}
