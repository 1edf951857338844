import type { Document, Node, Pair } from 'yaml';
import { isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser, parseDocument } from 'yaml';
import type { Mistake, Path } from './mistakes.ts';
import { formatPath } from './mistakes.ts';
import { SourceMap, pathKey } from './source-map.ts';
import { describeYamlErrors } from './yaml-errors.ts';
import type { ConfigEnvironment } from './substitute.ts';
import { substitute } from './substitute.ts';

/** Far more than a configuration needs, and small enough that garbage does not delay a reload for long. */
const MAX_TEXT_LENGTH = 256 * 1024;
const MAX_DEPTH = 100;
const MAX_VALUES = 100_000;

/** A YAML file as plain values, with every mistake in its YAML and in its references. */
export type YamlTree =
  | {
      readonly kind: 'yaml';
      readonly value: unknown;
      readonly sourceMap: SourceMap;
      readonly mistakes: readonly Mistake[];
      /** Scalars with a substituted variable or file, as they were written: by `pathKey`. */
      readonly substituted: ReadonlyMap<string, string>;
      /** Paths, by `pathKey`, whose value is unknown because of a mistake. */
      readonly failedPaths: ReadonlySet<string>;
    }
  /** The text is not YAML, or is too large. */
  | { readonly kind: 'invalid'; readonly mistakes: readonly Mistake[] };

export function parseYamlTree(text: string, file: string, environment: ConfigEnvironment): YamlTree {
  const lines = new LineCounter();
  const sourceMap = new SourceMap(file, lines);
  const reject = (...mistakes: readonly Mistake[]): YamlTree => ({ kind: 'invalid', mistakes });
  if (text.length > MAX_TEXT_LENGTH) {
    return reject(sourceMap.locate({ path: [], at: 'value', message: 'larger than 256KiB' }));
  }
  const tooDeep = findTooDeep(text, lines);
  if (tooDeep !== undefined) return reject(mistakeAtOffset(sourceMap, tooDeep, 'nested too deeply'));

  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, schema: 'core', logLevel: 'error' });
  const errors = [...document.errors, ...document.warnings];
  if (errors.length > 0) return reject(...describeYamlErrors(errors, text, sourceMap));
  return new YamlTreeBuilder(document, text, sourceMap, environment).build();
}

/**
 * The offset at which brackets or blocks nest deeper than MAX_DEPTH. Checked before anything recursive reads the text: yaml
 * 2.9.1 overflows the stack, and V8 then aborts the process when it compiles a regular expression.
 */
function findTooDeep(text: string, lines: LineCounter): number | undefined {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let tooDeep: number | undefined;
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > MAX_DEPTH) tooDeep ??= parser.offset;
    if (tooDeep !== undefined) break;
  }
  return tooDeep;
}

function mistakeAtOffset(sourceMap: SourceMap, offset: number, message: string): Mistake {
  return { ...sourceMap.positionAt(offset), path: '', message, suggestion: undefined };
}

/** Builds plain values from a document in one pass: records positions, substitutes references, and counts values. */
class YamlTreeBuilder {
  readonly #document: Document.Parsed;
  readonly #text: string;
  readonly #sourceMap: SourceMap;
  readonly #environment: ConfigEnvironment;
  readonly #mistakes: Mistake[] = [];
  readonly #substituted = new Map<string, string>();
  readonly #failed = new Set<string>();
  readonly #anchors = new Map<string, Node>();
  readonly #ancestors = new Set<Node>();
  #values = 0;

  constructor(document: Document.Parsed, text: string, sourceMap: SourceMap, environment: ConfigEnvironment) {
    this.#document = document;
    this.#text = text;
    this.#sourceMap = sourceMap;
    this.#environment = environment;
  }

  build(): YamlTree {
    const value = this.#readNode(this.#document.contents, [], 0);
    if (this.#values > MAX_VALUES) {
      const tooMany = mistakeAtOffset(this.#sourceMap, 0, `more than ${MAX_VALUES} values, aliases included`);
      return { kind: 'invalid', mistakes: [...this.#mistakes, tooMany] };
    }
    return {
      kind: 'yaml',
      value,
      sourceMap: this.#sourceMap,
      mistakes: this.#mistakes,
      substituted: this.#substituted,
      failedPaths: this.#failed,
    };
  }

  #readNode(node: Node | null, path: Path, key: number | undefined): unknown {
    this.#values += 1;
    if (this.#values > MAX_VALUES || node === null) return null;
    const value = offsetOf(node) ?? key ?? 0;
    // An empty value has no position of its own.
    this.#sourceMap.setOffsets(path, key ?? value, isScalar(node) && node.value === null ? (key ?? value) : value);
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source);
      if (target === undefined) return this.#fail(path, value, 'an alias without an anchor before it');
      if (this.#ancestors.has(target)) return this.#fail(path, value, 'an alias of a mapping or list that contains it');
      return this.#readNode(target, path, key ?? value);
    }
    if ('anchor' in node && typeof node.anchor === 'string') this.#anchors.set(node.anchor, node);
    this.#ancestors.add(node);
    const plain = this.#toValue(node, path, value);
    this.#ancestors.delete(node);
    return plain;
  }

  #toValue(node: Node, path: Path, offset: number): unknown {
    if (isMap<Node, Node | null>(node)) return this.#readMapping(node.items, path);
    if (isSeq<Node | null>(node)) return node.items.map((item, i) => this.#readNode(item, [...path, i], undefined));
    const value: unknown = isScalar(node) ? node.value : undefined;
    if (typeof value === 'string') return this.#substitute(value, path, offset);
    if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
    return this.#fail(path, offset, 'a kind of value that is not supported here');
  }

  #readMapping(items: readonly Pair<Node, Node | null>[], path: Path): Record<string, unknown> {
    const mapping: Record<string, unknown> = {};
    for (const { key, value } of items) {
      const offset = offsetOf(key) ?? 0;
      const name = isScalar(key) ? keyText(key.value) : undefined;
      if (name === undefined) {
        this.#addMistake(path, offset, 'a key must be plain text');
        continue;
      }
      const here = [...path, name];
      // Assigned below, it would set the prototype.
      if (name === '__proto__') this.#addMistake(here, offset, 'unknown key');
      else if (Object.hasOwn(mapping, name)) this.#addMistake(here, offset, this.#describeDuplicate(here));
      else mapping[name] = this.#readNode(value, here, offset);
    }
    return mapping;
  }

  #describeDuplicate(path: Path): string {
    const { line, column } = this.#sourceMap.locate({ path, at: 'key', message: '' });
    return `written twice: the first is at ${line}:${column}`;
  }

  #substitute(written: string, path: Path, offset: number): string {
    const { text, changed, problems } = substitute(written, this.#environment);
    if (changed) this.#substituted.set(pathKey(path), written);
    let from = offset;
    for (const { reference, message } of problems) {
      // In a scalar with escapes or folded lines, the reference may look different in the file.
      const found = this.#text.indexOf(reference, from);
      this.#fail(path, found < 0 ? offset : found, message);
      from = Math.max(from, found + 1);
    }
    return text;
  }

  #fail(path: Path, offset: number, message: string): null {
    this.#failed.add(pathKey(path));
    this.#addMistake(path, offset, message);
    return null;
  }

  #addMistake(path: Path, offset: number, message: string): void {
    this.#mistakes.push({
      ...this.#sourceMap.positionAt(offset),
      path: formatPath(path),
      message,
      suggestion: undefined,
    });
  }
}

/** Undefined for an empty key, and for a key that is not text, a number or a boolean. */
function keyText(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function offsetOf(node: Node | null): number | undefined {
  return node?.range?.[0];
}
