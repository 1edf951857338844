import type { Plugin } from 'rolldown';

/**
 * Escapes non-ASCII characters. V8 stores a source with any character beyond Latin-1 in two bytes a character, twice the
 * memory. Comments are removed before, so these characters occur only in strings, templates and patterns.
 */
export function ascii(): Plugin {
  return {
    name: 'ascii',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type === 'chunk') file.code = file.code.replaceAll(/[^\0-\x7f]/g, escape);
      }
    },
  };
}

/** @param unit a UTF-16 code unit; surrogates are escaped separately */
function escape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
