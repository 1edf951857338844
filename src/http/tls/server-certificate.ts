import { watch } from 'node:fs';
import { dirname } from 'node:path';
import type { SecureContextOptions, Server } from 'node:tls';
import { createSecureContext } from 'node:tls';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { isPem, readPem } from './pem.ts';

/** How the proxy shows itself to clients. */
export interface ListenTls {
  /** PEM text, or the path of a PEM file. */
  readonly cert: string;
  readonly key: string;
  readonly passphrase?: string | undefined;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
}

/** A certificate and its key are two files, and many ways of writing them raise several events. */
const UNREST: Millis = 200;

/** @throws the error of node:fs, when a file cannot be read */
export function readCertificate({ cert, key, passphrase, minVersion }: ListenTls): SecureContextOptions {
  const secret = passphrase === undefined ? {} : { passphrase };
  return { cert: readPem(cert), key: readPem(key), minVersion, ...secret };
}

/**
 * Shows another certificate to new connections when its files have changed. Their folders are watched: what is mounted
 * is swapped by a link beside it. One that cannot be used leaves the one before.
 * @param onChange told of each change, with what is wrong with it
 * @returns ends it
 */
export function followCertificate(server: Server, tls: ListenTls, onChange: (problem?: Error) => void): () => void {
  let shown = JSON.stringify(readCertificate(tls));
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    try {
      const read = readCertificate(tls);
      const text = JSON.stringify(read);
      if (text === shown) return;
      createSecureContext(read); // throws before anything has been changed
      server.setSecureContext(read);
      shown = text;
      onChange();
    } catch (error) {
      onChange(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const folders = new Set([tls.cert, tls.key].filter((value) => !isPem(value)).map((path) => dirname(path)));
  const watchers = [...folders].map((folder) =>
    watch(folder, { persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(look, UNREST).unref();
    }).on('error', onChange),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
