import { z } from 'zod';

const FIELDS = ['method', 'path', 'host', 'address', 'route', 'upstream', 'ignore'] as const;
const PATTERN = new RegExp(`^(?:${FIELDS.join('|')}|header:[!#$%&'*+.^_\`|~0-9A-Za-z-]{1,128})$`);

/** What the value of a rate limit descriptor's entry is. `header:NAME`: a header of the described request. */
export type DescriptorField = (typeof FIELDS)[number] | `header:${string}`;

export const DescriptorFieldSchema = z.codec(
  z.string().regex(PATTERN, `expected ${FIELDS.join(', ')} or header:NAME`),
  z.custom<DescriptorField>(),
  {
    decode: (text) => FIELDS.find((field) => field === text) ?? (`header:${text.slice('header:'.length)}` as const),
    encode: (field) => field,
  },
);

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
