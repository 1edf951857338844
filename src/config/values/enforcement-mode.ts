import { z } from 'zod';
import type { EnforcementMode } from '../../core/admission/gate-decision.ts';

export const EnforcementModeSchema = z.enum(['enforce', 'observe']);

interface Modes {
  readonly mode: EnforcementMode;
  readonly upstreams: Readonly<Record<string, { readonly mode?: EnforcementMode | undefined }>>;
}

/** The mode of an upstream: its own, else that of the configuration. */
export function modeOfUpstream({ mode, upstreams }: Modes, upstream: string): EnforcementMode {
  return upstreams[upstream]?.mode ?? mode;
}

/** `observe` if all upstreams are observed. */
export function modeOfConfig(config: Modes): EnforcementMode {
  return observedUpstreams(config).length === Object.keys(config.upstreams).length ? 'observe' : 'enforce';
}

/** The names of the upstreams in observe mode. */
export function observedUpstreams(config: Modes): string[] {
  return Object.keys(config.upstreams).filter((name) => modeOfUpstream(config, name) === 'observe');
}
