import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Act, Ending } from './response-plan.ts';
import { answerWith, isSuccess } from './response-plan.ts';

/** `pass`: as if there were no script. */
export type ScriptStep = Act | 'pass';

export const SCRIPT_GRAMMAR = `x-practice-script: STEP, STEP, …       one for each attempt with the same x-practice-id; the last one stays
STEP   = WORD; WORD; …                 such as 503   429; retry-after=2   delay=200; 200   reset-after-charge
an ending, at most one (200 if none):
  200 … 599                            this status; a 2xx does the route's work, others do none
  reset   hang                         the connection is reset, or nothing ever comes; no work is done
  pass                                 the limit decides, as without a script
  500-after-charge   reset-after-charge   hang-after-charge     the work is done, then this is the answer
modifiers:
  delay=MS                             that long before the ending
  body=BYTES                           so many bytes of filler as body
  cut=BYTES                            the connection breaks after so many bytes of a longer body
  retry-after=VALUE   header=NAME:VALUE   a header, verbatim; "quotes" allow for commas and semicolons`;

/** A script that does not follow the grammar; the message says where and why. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}

/**
 * What an `x-practice-script` asks for, attempt by attempt; at least one step.
 * @throws ScriptError
 */
export function parseScript(text: string): [ScriptStep, ...ScriptStep[]] {
  const [first = '', ...rest] = splitUnquoted(text, ',');
  return [parseStep(first, 1), ...rest.map((step, i) => parseStep(step, i + 2))];
}

interface Draft {
  ending: Ending | undefined;
  works: boolean;
  pass: boolean;
  delay: number;
  filler: number | undefined;
  cut: number | undefined;
  readonly headers: string[];
}

const AFTER_CHARGE = '-after-charge';
const LARGEST_BODY = 64 * 1024 * 1024;
const LONGEST_DELAY = 600_000;

function parseStep(text: string, position: number): ScriptStep {
  const fail = (problem: string) => new ScriptError(`step ${position}: ${problem}`);
  const draft: Draft = {
    ending: undefined,
    works: false,
    pass: false,
    delay: 0,
    filler: undefined,
    cut: undefined,
    headers: [],
  };
  const words = splitUnquoted(text, ';');
  for (const word of words) {
    const problem = word.includes('=') ? readModifier(draft, word) : readEnding(draft, word);
    if (problem !== undefined) throw fail(problem);
  }
  if (draft.pass) {
    if (words.length > 1) throw fail('"pass" stands alone');
    return 'pass';
  }
  return compose(draft, fail);
}

function compose(draft: Draft, fail: (problem: string) => ScriptError): Act {
  const { ending = answerWith(200), filler, cut, headers, delay } = draft;
  const works = draft.works || draft.ending === undefined;
  if (ending.kind === 'answer') return { delay, works, ending: { ...ending, headers, filler, cut } };
  if (filler === undefined && cut === undefined && headers.length === 0) return { delay, works, ending };
  throw fail(`"${ending.kind}" has neither headers nor a body`);
}

/** @returns what is wrong with the word, if anything */
function readEnding(draft: Draft, word: string): string | undefined {
  if (draft.ending !== undefined || draft.pass) return `"${word}" is a second ending`;
  const charges = word.endsWith(AFTER_CHARGE);
  const name = charges ? word.slice(0, -AFTER_CHARGE.length) : word;
  draft.works = charges;
  if (/^[2-5]\d\d$/.test(name)) {
    draft.ending = answerWith(Number(name));
    draft.works ||= isSuccess(Number(name));
  } else if (name === 'reset' || name === 'hang') draft.ending = { kind: name };
  else if (word === 'pass') draft.pass = true;
  else return word === '' ? 'an empty word' : `unknown word "${word}"`;
  return undefined;
}

/** @returns what is wrong with the word, if anything */
function readModifier(draft: Draft, word: string): string | undefined {
  const equals = word.indexOf('=');
  const name = word.slice(0, equals).trim();
  const value = unquote(word.slice(equals + 1).trim());
  switch (name) {
    case 'delay':
      draft.delay = Number(value);
      return wholeUpTo(LONGEST_DELAY, value, name);
    case 'body':
      draft.filler = Number(value);
      return wholeUpTo(LARGEST_BODY, value, name);
    case 'cut':
      draft.cut = Number(value);
      return wholeUpTo(LARGEST_BODY, value, name);
    case 'retry-after':
      return addHeader(draft, 'Retry-After', value);
    case 'header': {
      const colon = value.indexOf(':');
      if (colon < 1) return `header wants NAME:VALUE, not "${value}"`;
      return addHeader(draft, value.slice(0, colon).trim(), value.slice(colon + 1).trim());
    }
    default:
      return `unknown modifier "${name}"`;
  }
}

function wholeUpTo(most: number, value: string, name: string): string | undefined {
  if (/^\d+$/.test(value) && Number(value) <= most) return undefined;
  return `${name} wants a whole number up to ${most}, not "${value}"`;
}

function addHeader(draft: Draft, name: string, value: string): string | undefined {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    return `"${name}: ${value}" is no header`;
  }
  draft.headers.push(name, value);
  return undefined;
}

/** The trimmed parts between separators, of which those in quotes do not count. */
function splitUnquoted(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    if (quoted && text[i] === '\\') i += 1;
    else if (text[i] === '"') quoted = !quoted;
    else if (text[i] === separator && !quoted) {
      parts.push(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  if (quoted) throw new ScriptError('a quote is not closed');
  parts.push(text.slice(start).trim());
  return parts;
}

/** RFC 9110 §5.6.4. */
function unquote(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  return text.slice(1, -1).replaceAll(/\\(.)/g, '$1');
}
