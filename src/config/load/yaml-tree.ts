import type { Document, Node, Pair } from 'yaml';
import { isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser, parseDocument } from 'yaml';
import type { Mistake, Path } from './mistakes.ts';
import { formatPath } from './mistakes.ts';
import { Places, pathKey } from './source-map.ts';
import { toMistakes } from './yaml-errors.ts';
import type { Surroundings } from './substitute.ts';
import { substitute } from './substitute.ts';

/** Far more than a configuration needs, and little enough that garbage does not hold up a reload for long. */
const LARGEST = 256 * 1024;
const DEEPEST = 100;
const MOST_VALUES = 100_000;

/** A YAML file as plain values, with everything that is wrong with it as YAML. */
export interface Tree {
  /** Undefined when the text is not YAML at all: then `mistakes` says why. */
  readonly value: unknown;
  readonly places: Places;
  readonly mistakes: readonly Mistake[];
  /** Scalars in which something was substituted, by `pathKey`: as they were written. */
  readonly substituted: ReadonlyMap<string, string>;
  /** Paths, by `pathKey`, whose values could not be had. */
  readonly failed: ReadonlySet<string>;
}

export function readTree(text: string, file: string, surroundings: Surroundings): Tree {
  const lines = new LineCounter();
  const places = new Places(file, lines);
  const refuse = (mistakes: readonly Mistake[]): Tree => ({
    value: undefined,
    places,
    mistakes,
    substituted: new Map(),
    failed: new Set(),
  });
  if (text.length > LARGEST) return refuse([places.locate({ path: [], at: 'value', message: 'larger than 256KiB' })]);
  const tooDeep = findDepth(text, lines);
  if (tooDeep !== undefined) return refuse([mistakeAt(places, tooDeep, 'nested too deeply')]);

  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, schema: 'core', logLevel: 'error' });
  const errors = [...document.errors, ...document.warnings];
  if (errors.length > 0) return refuse(toMistakes(errors, text, places));
  return new Walk(document, text, places, surroundings).tree();
}

/**
 * Where brackets or blocks nest deeper than any configuration does, before anything recursive sees them: yaml 2.9.1
 * overflows the stack, and V8 then aborts the process when it compiles a regular expression there.
 */
function findDepth(text: string, lines: LineCounter): number | undefined {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let tooDeep: number | undefined;
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > DEEPEST) tooDeep ??= parser.offset;
    if (tooDeep !== undefined) break;
  }
  return tooDeep;
}

function mistakeAt(places: Places, offset: number, message: string): Mistake {
  return { ...places.at(offset), path: '', message, suggestion: undefined };
}

/** One pass over a document: makes plain values, notes where they stand, substitutes, and counts. */
class Walk {
  readonly #document: Document.Parsed;
  readonly #text: string;
  readonly #places: Places;
  readonly #surroundings: Surroundings;
  readonly #mistakes: Mistake[] = [];
  readonly #substituted = new Map<string, string>();
  readonly #failed = new Set<string>();
  readonly #anchors = new Map<string, Node>();
  readonly #open = new Set<Node>();
  #values = 0;

  constructor(document: Document.Parsed, text: string, places: Places, surroundings: Surroundings) {
    this.#document = document;
    this.#text = text;
    this.#places = places;
    this.#surroundings = surroundings;
  }

  tree(): Tree {
    const value = this.#read(this.#document.contents, [], 0);
    if (this.#values > MOST_VALUES) {
      this.#mistakes.push(mistakeAt(this.#places, 0, `more than ${MOST_VALUES} values, aliases included`));
    }
    return {
      value: this.#values > MOST_VALUES ? undefined : value,
      places: this.#places,
      mistakes: this.#mistakes,
      substituted: this.#substituted,
      failed: this.#failed,
    };
  }

  #read(node: Node | null, path: Path, key: number | undefined): unknown {
    this.#values += 1;
    if (this.#values > MOST_VALUES || node === null) return null;
    const value = start(node) ?? key ?? 0;
    // An empty value has no place of its own.
    this.#places.put(path, key ?? value, isScalar(node) && node.value === null ? (key ?? value) : value);
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source);
      if (target === undefined) return this.#fail(path, value, 'an alias of an anchor that does not come before it');
      if (this.#open.has(target)) return this.#fail(path, value, 'an alias of what it is part of');
      return this.#read(target, path, key ?? value);
    }
    if ('anchor' in node && typeof node.anchor === 'string') this.#anchors.set(node.anchor, node);
    this.#open.add(node);
    const plain = this.#plain(node, path, value);
    this.#open.delete(node);
    return plain;
  }

  #plain(node: Node, path: Path, offset: number): unknown {
    if (isMap<Node, Node | null>(node)) return this.#mapping(node.items, path);
    if (isSeq<Node | null>(node)) return node.items.map((item, i) => this.#read(item, [...path, i], undefined));
    const value: unknown = isScalar(node) ? node.value : undefined;
    if (typeof value === 'string') return this.#substitute(value, path, offset);
    if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
    return this.#fail(path, offset, 'not a kind of value that is used here');
  }

  #mapping(items: readonly Pair<Node, Node | null>[], path: Path): Record<string, unknown> {
    const mapping: Record<string, unknown> = {};
    for (const { key, value } of items) {
      const offset = start(key) ?? 0;
      const name = isScalar(key) ? keyText(key.value) : undefined;
      if (name === undefined) {
        this.#complain(path, offset, 'a key has to be plain text');
        continue;
      }
      const here = [...path, name];
      // Set below, it would be a prototype.
      if (name === '__proto__') this.#complain(here, offset, 'unknown key');
      else if (Object.hasOwn(mapping, name)) this.#complain(here, offset, 'written twice');
      else mapping[name] = this.#read(value, here, offset);
    }
    return mapping;
  }

  #substitute(written: string, path: Path, offset: number): string {
    const { text, changed, problems } = substitute(written, this.#surroundings);
    if (changed) this.#substituted.set(pathKey(path), written);
    let from = offset;
    for (const { reference, message } of problems) {
      // A scalar with escapes or folded lines may hold the reference in another form.
      const found = this.#text.indexOf(reference, from);
      this.#fail(path, found < 0 ? offset : found, message);
      from = Math.max(from, found + 1);
    }
    return text;
  }

  #fail(path: Path, offset: number, message: string): null {
    this.#failed.add(pathKey(path));
    this.#complain(path, offset, message);
    return null;
  }

  #complain(path: Path, offset: number, message: string): void {
    this.#mistakes.push({ ...this.#places.at(offset), path: formatPath(path), message, suggestion: undefined });
  }
}

/** Undefined for an empty key and for what is no text, number or boolean. */
function keyText(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function start(node: Node | null): number | undefined {
  return node?.range?.[0];
}
