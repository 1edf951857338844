import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig } from '../load/partial-config.ts';
import { suggest } from '../values/suggest.ts';

/** A fallback is another upstream, and fallbacks form no cycle. */
export function* checkFallbacks({ upstreamNames = [], upstreams, mode }: PartialConfig): Generator<RuleFinding> {
  for (const [name, { fallback, mode: ownMode }] of upstreams) {
    if (fallback === undefined) continue;
    const path = ['upstreams', name, 'fallback'];
    if (!upstreamNames.includes(fallback)) {
      yield mistakeAt(path, 'no upstream has this name', suggest(fallback, upstreamNames));
    } else if (fallback === name) {
      yield mistakeAt(path, 'an upstream cannot be its own fallback: name another one');
    } else if (leadsBack(name, upstreams)) {
      yield mistakeAt(path, `fallbacks form a cycle: ${name} → ${fallback} → … → ${name}; remove one of them`);
    } else if ((ownMode ?? mode) === 'observe') {
      yield warningAt(path, 'has no effect in observe mode, which refuses nothing');
    }
  }
}

function leadsBack(name: string, upstreams: PartialConfig['upstreams']): boolean {
  const seen = new Set<string>();
  for (let next = upstreams.get(name)?.fallback; next !== undefined && !seen.has(next); ) {
    if (next === name) return true;
    seen.add(next);
    next = upstreams.get(next)?.fallback;
  }
  return false;
}
