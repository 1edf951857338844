/** `tidegate`: the proxy as a Fastify plugin. */
export { ConfigError } from './config-error.ts';
export type { HostRegistry, Mounted, TidegateOptions } from './fastify-plugin.ts';
export { tidegate } from './fastify-plugin.ts';
export type { ConfigOrigin } from './config-origin.ts';
export type { ConfigInput } from '../config/schema/config-schema.ts';
export type { Mistake } from '../config/load/mistakes.ts';
export type { ReloadResult } from '../process/reload-result.ts';
