import { z } from 'zod';

/** A PEM file, or PEM text. */
export const Pem = z.string().min(1);

export const Passphrase = z.string().min(1);

/** Older ones are broken (RFC 8996). */
export const TlsVersion = z.enum(['TLSv1.2', 'TLSv1.3']);

/** How an https upstream is verified, and how we show who we are. */
export const UpstreamTls = z.strictObject({
  ca: Pem.optional().describe('Certificates to trust instead of the system’s: a PEM file, or PEM text.'),
  cert: Pem.optional().describe('Our certificate for mutual TLS: a PEM file, or PEM text.'),
  key: Pem.optional().describe('The key of our certificate: a PEM file, or PEM text.'),
  passphrase: Passphrase.optional().describe('What opens the key, where it is encrypted.'),
  serverName: z.string().min(1).optional().describe('The name to ask for and to verify, if not the host of the URL.'),
  minVersion: TlsVersion.prefault('TLSv1.2').describe('The oldest version of TLS to accept.'),
  insecure: z.boolean().prefault(false).describe('True accepts any certificate: for tests only.'),
});
