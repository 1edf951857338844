import type { ConfigInput } from '../config/schema/config-schema.ts';

/** Where the configuration is: in an object, or in a file of YAML. */
export type ConfigOrigin =
  | { readonly config: ConfigInput; readonly file?: undefined }
  | { readonly file: string; readonly config?: undefined };
