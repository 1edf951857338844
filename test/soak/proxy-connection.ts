/** Connections to the proxy, over TLS or not by the scheme of its URL. */
import type { ClientRequest } from 'node:http';
import { Agent, request } from 'node:http';
import type { RequestOptions } from 'node:https';
import { Agent as TlsAgent, request as requestByTls } from 'node:https';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { connect as connectByTls } from 'node:tls';

const usesTls = (url: string): boolean => url.startsWith('https:');

/** @param ca PEM text of the CA, for TLS */
export function agentFor(url: string, ca: string): Agent {
  return usesTls(url) ? new TlsAgent({ keepAlive: true, ca }) : new Agent({ keepAlive: true });
}

export function requestAt(url: string, options: RequestOptions): ClientRequest {
  const { hostname, port } = new URL(url);
  return (usesTls(url) ? requestByTls : request)({ hostname, port, ...options });
}

/** @param ca PEM text of the CA, for TLS */
export function connectTo(url: string, ca: string): Socket {
  const { hostname: host, port } = new URL(url);
  return usesTls(url) ? connectByTls({ host, port: Number(port), ca }) : connect({ host, port: Number(port) });
}
