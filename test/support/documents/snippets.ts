/** A code block that a document asks its reader to run or to write to a file. */
export interface Snippet {
  /** Line number of its first line, from 1. */
  readonly line: number;
  /** `sh`, `yaml`, `js`, … as the fence says. */
  readonly language: string;
  readonly text: string;
  readonly marks: readonly Mark[];
}

/**
 * How a snippet is tested, unless it is a plain command: a comment on the lines before its fence, hidden from readers.
 *
 *     <!-- tried: after COMMAND -->              a prerequisite that the document does not mention
 *     <!-- tried: beside npm start -->           this server runs from here to the end of the document
 *     <!-- tried: serves -->                     it runs to the end, or until the next server starts
 *     <!-- tried: goes on -->                    it does not end: it is stopped after its first output
 *     <!-- tried: ends with 1 -->                the exit status of the whole snippet, 0 by default
 *     <!-- tried: as tidegate.yaml -->           it is the content of this file
 *     <!-- tried: where ID is COMMAND -->        a placeholder for a value that differs each time
 *     <!-- tried: by bench -->                   tested elsewhere: by bench, containers, ci, or a test that names the document
 *     <!-- tried: by hand: REASON -->            tested manually only
 */
export type Mark =
  | { readonly kind: 'serves' }
  | { readonly kind: 'goes on' }
  | { readonly kind: 'after'; readonly command: string }
  | { readonly kind: 'beside'; readonly command: string }
  | { readonly kind: 'ends with'; readonly status: number }
  | { readonly kind: 'as'; readonly file: string }
  | { readonly kind: 'where'; readonly word: string; readonly command: string }
  /** `bench`, `containers`, `ci`, or a test's file. */
  | { readonly kind: 'by'; readonly whom: string }
  | { readonly kind: 'by hand'; readonly because: string };

const FENCE = /^```(\w*)$/;
const COMMENT = /^<!-- tried: (.+) -->$/;

/** @throws if a mark is invalid, a fence is not closed, or a mark is not followed by a snippet */
export function readSnippets(markdown: string): Snippet[] {
  const snippets: Snippet[] = [];
  let marks: Mark[] = [];
  let open: { line: number; language: string; text: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = FENCE.exec(line);
    if (open !== undefined) {
      if (line === '```') {
        snippets.push({ ...open, text: open.text.join('\n'), marks });
        [open, marks] = [undefined, []];
      } else open.text.push(line);
    } else if (fence !== null) {
      open = { line: index + 2, language: fence[1] ?? '', text: [] };
    } else {
      const comment = COMMENT.exec(line);
      if (comment !== null) marks.push(readMark(comment[1] ?? '', index + 1));
      else if (marks.length > 0) throw new Error(`line ${index + 1}: a mark without a snippet behind it`);
    }
  }
  if (open !== undefined) throw new Error(`line ${open.line}: a fence that is not closed`);
  return snippets;
}

function readMark(text: string, line: number): Mark {
  const first = /^(after|beside) (.+)$/.exec(text);
  const ends = /^ends with (\d+)$/.exec(text);
  const as = /^as ([\w./-]+)$/.exec(text);
  const where = /^where (\S+) is (.+)$/.exec(text);
  const by = /^by (bench|containers|ci|test\/[\w/-]+\.test\.ts)$/.exec(text);
  const byHand = /^by hand: (.+)$/.exec(text);
  if (text === 'serves' || text === 'goes on') return { kind: text };
  if (first !== null) return { kind: first[1] as 'after' | 'beside', command: first[2] ?? '' };
  if (ends !== null) return { kind: 'ends with', status: Number(ends[1]) };
  if (as !== null) return { kind: 'as', file: as[1] ?? '' };
  if (where !== null) return { kind: 'where', word: where[1] ?? '', command: where[2] ?? '' };
  if (by !== null) return { kind: 'by', whom: by[1] ?? '' };
  if (byHand !== null) return { kind: 'by hand', because: byHand[1] ?? '' };
  throw new Error(`line ${line}: 'tried: ${text}' is no way to try a snippet`);
}
