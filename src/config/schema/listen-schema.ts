import { z } from 'zod';
import type { Address } from '../values/listen-address.ts';
import { ListenAddress } from '../values/listen-address.ts';
import { Passphrase, Pem, TlsVersion } from './tls-schema.ts';

/** The server side of TLS. */
export interface ListenTlsConfig {
  /** PEM text, or the path of a PEM file; intermediate certificates follow the server's. */
  readonly cert: string;
  readonly key: string;
  readonly passphrase?: string | undefined;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** PEM text, or the path of a PEM file. */
  readonly clientCa?: string | undefined;
}

/** Where clients connect, and by which protocol. */
export interface ListenConfig {
  readonly address: Address;
  /** Undefined: plain HTTP. */
  readonly tls: ListenTlsConfig | undefined;
  /** Offer HTTP/2 next to HTTP/1.1, by ALPN. Only with `tls`. */
  readonly http2: boolean;
  /** Permissions of the Unix socket file, in octal; undefined: those of the umask. */
  readonly permissions: string | undefined;
}

/** Concurrent requests on one HTTP/2 connection: the minimum that RFC 9113 §6.5.2 recommends. */
export const MAX_CONCURRENT_STREAMS = 100;

export const Permissions = z
  .string()
  .regex(/^0?[0-7]{3}$/, 'expected permissions in octal, such as "0660"')
  .optional()
  .describe('Permissions of the Unix socket file, such as "0660"; those of the umask if absent.');

const ListenTlsSchema = z.strictObject({
  cert: Pem.describe('The server certificate, followed by intermediate certificates: a PEM file, or PEM text.'),
  key: Pem.describe('The private key of the certificate: a PEM file, or PEM text.'),
  passphrase: Passphrase.optional().describe('Passphrase of an encrypted key.'),
  minVersion: TlsVersion.prefault('TLSv1.2').describe('The lowest TLS version that clients may use.'),
  clientCa: Pem.optional().describe(
    'CA certificates that issue those of clients, for clients.auth.certificate: a PEM file, or PEM text.',
  ),
});

export const ListenSchema = z.codec(
  z.union(
    [
      // Before the address: encoding takes the first member that accepts, and an address would accept anything.
      z.strictObject({
        address: ListenAddress.describe('host:port, [::]:port or unix:/path.'),
        tls: ListenTlsSchema.optional().describe('Serve HTTPS with this certificate.'),
        http2: z.boolean().prefault(false).describe('Offer HTTP/2 next to HTTP/1.1; needs tls.'),
        permissions: Permissions,
      }),
      ListenAddress,
    ],
    'expected host:port, [::]:port, unix:/path or {address, tls, http2}',
  ),
  z.custom<ListenConfig>(),
  {
    decode(input) {
      if ('kind' in input) return { address: input, tls: undefined, http2: false, permissions: undefined };
      const { address, tls, http2, permissions } = input;
      return { address, tls, http2, permissions };
    },
    encode({ address, tls, http2, permissions }) {
      if (tls === undefined && !http2 && permissions === undefined) return address;
      return {
        address,
        http2,
        ...(tls === undefined ? {} : { tls }),
        ...(permissions === undefined ? {} : { permissions }),
      };
    },
  },
);
