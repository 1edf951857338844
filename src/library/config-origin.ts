import type { ConfigInput } from '../config/schema/config-schema.ts';

/** The configuration: an object, or the path of a YAML file. */
export type ConfigOrigin =
  | { readonly config: ConfigInput; readonly file?: undefined }
  | { readonly file: string; readonly config?: undefined };
