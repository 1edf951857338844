import type { RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import type { PartialConfig } from '../load/partial-config.ts';
import { partialModeOf } from './route-mode.ts';
import { suggest } from '../values/suggest.ts';

/** A fallback is another upstream, and fallbacks form no cycle. */
export function* checkFallbacks(draft: PartialConfig): Generator<RuleFinding> {
  const { upstreamNames = [], upstreams } = draft;
  for (const [name, { fallback }] of upstreams) {
    if (fallback === undefined) continue;
    const path = ['upstreams', name, 'fallback'];
    if (!upstreamNames.includes(fallback)) {
      yield mistakeAt(path, 'no upstream has this name', suggest(fallback, upstreamNames));
    } else if (fallback === name) {
      yield mistakeAt(path, 'an upstream cannot be its own fallback: name another one');
    } else if (leadsBack(name, upstreams)) {
      yield mistakeAt(path, `fallbacks form a cycle: ${name} → ${fallback} → … → ${name}; remove one of them`);
    } else if (isObserved(draft, name)) {
      yield warningAt(path, 'has no effect in observe mode, which refuses nothing');
    }
  }
}

/** Whether each route to the upstream is in observe mode. */
function isObserved(draft: PartialConfig, name: string): boolean {
  const routes = (draft.routes ?? []).filter(({ upstream }) => upstream === name);
  const modes = (routes.length === 0 ? [{ upstream: name, mode: undefined }] : routes).map((route) =>
    partialModeOf(draft, route),
  );
  return modes.every((mode) => mode === 'observe');
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
