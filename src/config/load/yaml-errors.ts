import type { ErrorCode, YAMLError } from 'yaml';
import type { Mistake } from './mistakes.ts';
import type { Places } from './source-map.ts';

/** yaml's own messages repeat the text they stumble over, which may be a secret. */
const MESSAGES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'not the name of an anchor',
  BAD_COLLECTION_TYPE: 'a tag that does not fit what follows it',
  BAD_DIRECTIVE: 'a directive that is not understood',
  BAD_DQ_ESCAPE: 'not an escape of a double-quoted text',
  BAD_INDENT: 'not indented enough, or not closed before',
  BAD_PROP_ORDER: 'an anchor or a tag in the wrong place',
  BAD_SCALAR_START: 'text cannot start like this without quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second mapping or list on the line of the first: quote the text, or start a new line',
  BLOCK_IN_FLOW: 'a block within brackets or braces',
  DUPLICATE_KEY: 'written twice',
  IMPOSSIBLE: 'not YAML',
  KEY_OVER_1024_CHARS: 'a key of more than 1024 characters',
  MISSING_CHAR: 'a quote, bracket, colon, comma or space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key of more than one line',
  MULTIPLE_ANCHORS: 'more than one anchor',
  MULTIPLE_DOCS: 'a second document: a configuration is one',
  MULTIPLE_TAGS: 'more than one tag',
  NON_STRING_KEY: 'a key has to be plain text',
  RESOURCE_EXHAUSTION: 'nested too deeply',
  TAB_AS_INDENT: 'a tab: YAML is indented by spaces',
  TAG_RESOLVE_FAILED: 'a tag that is not used here',
  UNEXPECTED_TOKEN: 'not expected here: a quote, bracket or line break may be missing before it',
};

/** What is no YAML. Once the parser has lost its way, only the first place tells anything. */
export function toMistakes(errors: readonly YAMLError[], text: string, places: Places): Mistake[] {
  const lost = errors.findIndex(({ code }) => code === 'UNEXPECTED_TOKEN');
  const telling = lost < 0 ? errors : errors.slice(0, lost + 1);
  const first = new Map(telling.toReversed().map((error) => [error.pos[0], error]));
  return [...first.values()].toReversed().map(({ code, pos: [offset] }) => ({
    ...places.at(offset),
    path: '',
    message: `not YAML: ${MESSAGES[code]}`,
    suggestion: suggestQuotes(text, offset),
  }));
}

/** Characters either side, of lines that have no end. */
const NEAR = 200;

/** Where YAML sees a bracket and people see text: `[::]:8080`, and `${NAME}` within brackets or braces. */
function suggestQuotes(text: string, offset: number): string | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const end = text.indexOf('\n', offset);
  const line = text.slice(Math.max(start, offset - NEAR), Math.min(end < 0 ? text.length : end, offset + NEAR));
  const listen = /(?<!["'\w])\[[0-9A-Fa-f:]*\]:\d+/.exec(line)?.[0];
  if (listen !== undefined) return `"${listen}"`;
  const reference = /[{[].*?(?<!["'])(\$\{(?:\w+|file:[\w./-]+)\})(?!["'])/.exec(line)?.[1];
  return reference === undefined ? undefined : `"${reference}"`;
}
