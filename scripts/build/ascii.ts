import type { Plugin } from 'rolldown';

/**
 * Writes what is not ASCII as escapes. V8 keeps the text of a file that has one such character beyond Latin-1 with two bytes a
 * character: twice the memory. Comments are gone by now, so that all of it is within strings, templates and patterns.
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

/** @param unit a UTF-16 code unit: of a pair, each on its own */
function escape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
