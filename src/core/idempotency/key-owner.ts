/** What names a client for as long as it uses an idempotency key. A secret: not to be kept beyond the request, unless encrypted. */
export interface KeyOwner {
  /** The source of the name, `\0` and the name: `name` if it is proven, `header:x-client` or `path:2`. Empty for all without a name. */
  readonly name: string;
  /** The source, and the settings that decide which name it has. Different names of different kinds may be those of one client. */
  readonly kind: string;
}

/** All clients that nothing names, or that only a token or an address identifies, which may change before a repeat. */
export const NO_OWNER: KeyOwner = { name: '', kind: '' };
