import type { FieldLookup } from './read-cost-fields.ts';
import type { CostFieldPath } from './route-costs.ts';

/** A longer event is not read. */
const MAX_LINE_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

/**
 * Reads fields of the JSON `data` of server-sent events (WHATWG HTML, "Server-sent events") while they are forwarded. The last value
 * of each field counts. A field is found in the event itself or in one of its members, because some APIs wrap the response: OpenAI in
 * `response`, Anthropic in `message`. Keeps one line at most.
 */
export class EventStreamFields {
  readonly #paths: readonly CostFieldPath[];
  readonly #values = new Map<CostFieldPath, number>();
  #line: Buffer[] = [];
  #length = 0;

  constructor(paths: readonly CostFieldPath[]) {
    this.#paths = paths;
  }

  readonly lookup: FieldLookup = (path) => this.#values.get(path);

  add(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  /** Copies it, because the caller may reuse its memory. */
  #keep(part: Buffer): void {
    this.#length += part.length;
    if (part.length > 0 && this.#length <= MAX_LINE_BYTES) this.#line.push(Buffer.from(part));
  }

  #endLine(): void {
    const isWhole = this.#length <= MAX_LINE_BYTES;
    const line = Buffer.concat(this.#line);
    this.#line = [];
    this.#length = 0;
    if (!isWhole || line.subarray(0, 5).toString('latin1') !== 'data:') return;
    // Most events have none of the fields, and are not parsed.
    const paths = this.#paths.filter((path) => line.includes(`"${path.at(-1)}"`));
    if (paths.length === 0) return;
    const data = parse(line.subarray(5).toString('utf8'));
    for (const path of paths) {
      const value = numberAt(data, path) ?? numberInMember(data, path);
      if (value !== undefined) this.#values.set(path, value);
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function numberAt(root: unknown, path: CostFieldPath): number | undefined {
  let value = root;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function numberInMember(root: unknown, path: CostFieldPath): number | undefined {
  if (typeof root !== 'object' || root === null) return undefined;
  for (const member of Object.values(root)) {
    const value = numberAt(member, path);
    if (value !== undefined) return value;
  }
  return undefined;
}
