/** `tidegate`: the proxy within a program of one's own. */
export { ConfigError } from './config-error.ts';
export type { HostRegistry, Mounted, TidegateOptions } from './tidegate.ts';
export { tidegate } from './tidegate.ts';
export type { ConfigOrigin } from './config-origin.ts';
export type { ConfigInput } from '../config/schema.ts';
export type { Mistake } from '../config/mistakes.ts';
export type { ReloadResult } from '../running/reload-result.ts';
