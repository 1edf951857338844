import { mistakeOf } from '../../core/http-semantics/path-pattern.ts';
import { misread, written } from './text-codec.ts';

/** A pattern of paths: `/v1/charges`, `*` for a segment, `{name}` for one that counts, `**` at the end for the rest. */
export const PathPattern = written<string>({
  expected: 'a path pattern such as /v1/charges, /v1/{resource} or /v1/files/**',
  forms: [{ type: 'string', pattern: '^/[^?#\\s]*$' }],
  read(input) {
    const text = String(input);
    const mistake = mistakeOf(text);
    if (mistake === undefined) return { ok: true, value: text };
    return misread(mistake, text.startsWith('/') || text === '' ? undefined : `/${text}`);
  },
  write: (text) => text,
  holds: (value) => typeof value === 'string',
});
