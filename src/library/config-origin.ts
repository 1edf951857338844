import type { ConfigInput } from '../config/schema/config-schema.ts';

/**
 * The configuration: an object, or the path of a YAML file. The object is last: the compiler compares options that match
 * neither member with the last one, and so reports the misspelt key.
 */
export type ConfigOrigin =
  | { readonly file: string; readonly config?: undefined }
  | { readonly config: ConfigInput; readonly file?: undefined };
