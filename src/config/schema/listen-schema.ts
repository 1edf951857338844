import { z } from 'zod';
import type { Address } from '../values/listen-address.ts';
import { ListenAddress } from '../values/listen-address.ts';
import { Passphrase, Pem, TlsVersion } from './tls-schema.ts';

/** How the proxy shows itself to clients that connect by TLS. */
export interface ListenTls {
  /** PEM text, or the path of a PEM file; with the certificates of intermediate authorities, if there are any. */
  readonly cert: string;
  readonly key: string;
  readonly passphrase?: string | undefined;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
}

/** Where clients connect, and what is spoken there. */
export interface Listener {
  readonly address: Address;
  /** Undefined: plain HTTP. */
  readonly tls: ListenTls | undefined;
  /** Offer HTTP/2 beside HTTP/1.1, by ALPN. Only with `tls`. */
  readonly http2: boolean;
  /** Of the file of a Unix socket, in octal; undefined: as the umask has it. */
  readonly permissions: string | undefined;
}

/** Requests that a client may have open on one connection over HTTP/2: the least that RFC 9113 §6.5.2 calls sensible. */
export const MAX_STREAMS = 100;

export const Permissions = z
  .string()
  .regex(/^0?[0-7]{3}$/, 'expected permissions in octal, such as "0660"')
  .optional()
  .describe('Of the file of a Unix socket, such as "0660"; as the umask has it if absent.');

const Tls = z.strictObject({
  cert: Pem.describe('Our certificate, with those of intermediate authorities: a PEM file, or PEM text.'),
  key: Pem.describe('The key of our certificate: a PEM file, or PEM text.'),
  passphrase: Passphrase.optional().describe('What opens the key, where it is encrypted.'),
  minVersion: TlsVersion.prefault('TLSv1.2').describe('The oldest version of TLS that a client may speak.'),
});

export const Listen = z.codec(
  z.union(
    [
      // Before the address: encoding takes the first that fits, and an address would try anything.
      z.strictObject({
        address: ListenAddress.describe('host:port, [::]:port or unix:/path.'),
        tls: Tls.optional().describe('HTTPS: the certificate to show to clients.'),
        http2: z.boolean().prefault(false).describe('Offer HTTP/2 beside HTTP/1.1; needs tls.'),
        permissions: Permissions,
      }),
      ListenAddress,
    ],
    'expected host:port, [::]:port, unix:/path or {address, tls, http2}',
  ),
  z.custom<Listener>(),
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
