import { watch } from 'node:fs';
import { dirname } from 'node:path';
import type { SecureContextOptions, Server } from 'node:tls';
import { createSecureContext } from 'node:tls';
import type { Millis } from '../../core/scalars.ts';
import { isPem, readPem } from './pem.ts';

/** The server certificate. */
export interface ServerTls {
  /** PEM text, or the path of a PEM file. */
  readonly cert: string;
  readonly key: string;
  readonly passphrase?: string | undefined;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** CA certificates of clients, as PEM text or the path of a PEM file; undefined: clients are not asked for certificates. */
  readonly clientCa?: string | undefined;
}

/** Certificate and key are two files, and writing them mostly causes several events: wait until there are no more. */
const SETTLE_TIME: Millis = 200;

/** @throws the error of node:fs, when a file cannot be read */
export function readCertificate({ cert, key, passphrase, minVersion, clientCa }: ServerTls): SecureContextOptions {
  const options = {
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(clientCa === undefined ? {} : { ca: readPem(clientCa) }),
  };
  return { cert: readPem(cert), key: readPem(key), minVersion, ...options };
}

/**
 * Uses a new certificate for new connections when its files have changed. Watches their folders, because mounted files are swapped
 * by a link beside them. A certificate that cannot be used leaves the previous one in place.
 * @param onChange called for each change, with the error if the certificate cannot be used
 * @returns a function that stops watching
 */
export function watchCertificate(server: Server, tls: ServerTls, onChange: (problem?: Error) => void): () => void {
  let currentText = JSON.stringify(readCertificate(tls));
  let timer: NodeJS.Timeout | undefined;
  const reload = (): void => {
    try {
      const read = readCertificate(tls);
      const text = JSON.stringify(read);
      if (text === currentText) return;
      createSecureContext(read); // throws before anything has been changed
      server.setSecureContext(read);
      currentText = text;
      onChange();
    } catch (error) {
      onChange(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const values = [tls.cert, tls.key, tls.clientCa].filter((value) => value !== undefined);
  const folders = new Set(values.filter((value) => !isPem(value)).map((path) => dirname(path)));
  const watchers = [...folders].map((folder) =>
    watch(folder, { persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(reload, SETTLE_TIME).unref();
    }).on('error', onChange),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
