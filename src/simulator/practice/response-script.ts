import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { ResponsePlan, ResponseEnding } from './response-plan.ts';
import { respondWith, isSuccess } from './response-plan.ts';

/** `pass`: the limit decides, as without a script. */
export type ScriptStep = ResponsePlan | 'pass';

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

/** Thrown for a script that violates the grammar; the message names the step and the fault. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}

/**
 * Parses an `x-practice-script` into its steps, one for each attempt; at least one.
 * @throws ScriptError
 */
export function parseScript(text: string): [ScriptStep, ...ScriptStep[]] {
  const [first = '', ...rest] = splitUnquoted(text, ',');
  return [parseStep(first, 1), ...rest.map((step, i) => parseStep(step, i + 2))];
}

interface StepDraft {
  ending: ResponseEnding | undefined;
  runsHandler: boolean;
  pass: boolean;
  delay: number;
  fillerBytes: number | undefined;
  cutAfterBytes: number | undefined;
  readonly headers: string[];
}

const AFTER_CHARGE = '-after-charge';
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_DELAY_MS = 600_000;

function parseStep(text: string, position: number): ScriptStep {
  const fail = (problem: string) => new ScriptError(`step ${position}: ${problem}`);
  const draft: StepDraft = {
    ending: undefined,
    runsHandler: false,
    pass: false,
    delay: 0,
    fillerBytes: undefined,
    cutAfterBytes: undefined,
    headers: [],
  };
  const words = splitUnquoted(text, ';');
  for (const word of words) {
    const problem = word.includes('=') ? parseModifier(draft, word) : parseEnding(draft, word);
    if (problem !== undefined) throw fail(problem);
  }
  if (draft.pass) {
    if (words.length > 1) throw fail('"pass" stands alone');
    return 'pass';
  }
  return toPlan(draft, fail);
}

function toPlan(draft: StepDraft, fail: (problem: string) => ScriptError): ResponsePlan {
  const { ending = respondWith(200), fillerBytes, cutAfterBytes, headers, delay } = draft;
  const runsHandler = draft.runsHandler || draft.ending === undefined;
  if (ending.kind === 'answer') {
    return {
      delay,
      runsHandler,
      ending: { ...ending, headers, fillerBytes, cutAfterBytes },
    };
  }
  if (fillerBytes === undefined && cutAfterBytes === undefined && headers.length === 0) {
    return { delay, runsHandler, ending };
  }
  throw fail(`"${ending.kind}" has neither headers nor a body`);
}

/** @returns the error in the word, or undefined */
function parseEnding(draft: StepDraft, word: string): string | undefined {
  if (draft.ending !== undefined || draft.pass) return `"${word}" is a second ending`;
  const charges = word.endsWith(AFTER_CHARGE);
  const name = charges ? word.slice(0, -AFTER_CHARGE.length) : word;
  draft.runsHandler = charges;
  if (/^[2-5]\d\d$/.test(name)) {
    draft.ending = respondWith(Number(name));
    draft.runsHandler ||= isSuccess(Number(name));
  } else if (name === 'reset' || name === 'hang') draft.ending = { kind: name };
  else if (word === 'pass') draft.pass = true;
  else return word === '' ? 'an empty word' : `unknown word "${word}"`;
  return undefined;
}

/** @returns the error in the word, or undefined */
function parseModifier(draft: StepDraft, word: string): string | undefined {
  const equals = word.indexOf('=');
  const name = word.slice(0, equals).trim();
  const value = unquote(word.slice(equals + 1).trim());
  switch (name) {
    case 'delay':
      draft.delay = Number(value);
      return checkWholeNumber(MAX_DELAY_MS, value, name);
    case 'body':
      draft.fillerBytes = Number(value);
      return checkWholeNumber(MAX_BODY_BYTES, value, name);
    case 'cut':
      draft.cutAfterBytes = Number(value);
      return checkWholeNumber(MAX_BODY_BYTES, value, name);
    case 'retry-after':
      return addHeader(draft, 'Retry-After', value);
    case 'header': {
      const colon = value.indexOf(':');
      if (colon < 1) return `header: expected NAME:VALUE, not "${value}"`;
      return addHeader(draft, value.slice(0, colon).trim(), value.slice(colon + 1).trim());
    }
    default:
      return `unknown modifier "${name}"`;
  }
}

function checkWholeNumber(most: number, value: string, name: string): string | undefined {
  if (/^\d+$/.test(value) && Number(value) <= most) return undefined;
  return `${name}: expected a whole number up to ${most}, not "${value}"`;
}

function addHeader(draft: StepDraft, name: string, value: string): string | undefined {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    return `"${name}: ${value}" is not a valid header`;
  }
  draft.headers.push(name, value);
  return undefined;
}

/** Splits text at separators outside quotes, and trims the parts. */
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
  if (quoted) throw new ScriptError('unterminated quote');
  parts.push(text.slice(start).trim());
  return parts;
}

/** RFC 9110 §5.6.4. */
function unquote(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  return text.slice(1, -1).replaceAll(/\\(.)/g, '$1');
}
