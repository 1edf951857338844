import { z } from 'zod';

/** A PEM file, or PEM text. */
export const Pem = z.string().min(1);

export const Passphrase = z.string().min(1);

/** Older versions are insecure (RFC 8996). */
export const TlsVersion = z.enum(['TLSv1.2', 'TLSv1.3']);

/** The client side of TLS: how a server is verified, and the client certificate. */
export const UpstreamTlsSchema = z.strictObject({
  ca: Pem.optional().describe('CA certificates to trust in place of the system’s: a PEM file, or PEM text.'),
  cert: Pem.optional().describe('Client certificate for mutual TLS: a PEM file, or PEM text.'),
  key: Pem.optional().describe('Private key of the client certificate: a PEM file, or PEM text.'),
  passphrase: Passphrase.optional().describe('Passphrase of an encrypted key.'),
  serverName: z
    .string()
    .min(1)
    .optional()
    .describe('Server name for SNI and verification, if not the host of the URL.'),
  minVersion: TlsVersion.prefault('TLSv1.2').describe('The lowest TLS version to accept.'),
  insecure: z.boolean().prefault(false).describe('Accept any certificate: for tests only.'),
});
