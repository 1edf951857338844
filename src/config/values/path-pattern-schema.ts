import { validatePathPattern } from '../../core/http-semantics/path-pattern.ts';
import { parseFailure, textCodec } from './text-codec.ts';

/** A path pattern: `/v1/charges`, with `*` for a segment, `{name}` for a named segment, `**` at the end for the rest. */
export const PathPatternSchema = textCodec<string>({
  expected: 'a path pattern such as /v1/charges, /v1/{resource} or /v1/files/**',
  forms: [{ type: 'string', pattern: '^/[^?#\\s]*$' }],
  parse(input) {
    const text = String(input);
    const mistake = validatePathPattern(text);
    if (mistake === undefined) return { ok: true, value: text };
    return parseFailure(mistake, text.startsWith('/') || text === '' ? undefined : `/${text}`);
  },
  format: (text) => text,
  isValue: (value) => typeof value === 'string',
});
