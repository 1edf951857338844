import { z } from 'zod';

const FIELDS = ['method', 'path', 'host', 'address', 'route', 'upstream', 'ignore'] as const;
const HEADER_NAME = /[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}/;

/** What the value of a rate limit descriptor's entry is. `header:NAME`: a header of the described request. */
export const DescriptorFieldSchema = z.union(
  [z.enum(FIELDS), z.templateLiteral(['header:', z.string().regex(HEADER_NAME)])],
  `expected ${FIELDS.join(', ')} or header:NAME`,
);

export type DescriptorField = z.output<typeof DescriptorFieldSchema>;

/** The meaning of the keys that Envoy's actions use. Any other key is the name of a header. */
export const DESCRIPTOR_FIELDS: Readonly<Record<string, DescriptorField>> = {
  ':method': 'method',
  method: 'method',
  ':path': 'path',
  path: 'path',
  ':authority': 'host',
  host: 'host',
  remote_address: 'address',
  route: 'route',
  upstream: 'upstream',
  generic_key: 'upstream',
};
