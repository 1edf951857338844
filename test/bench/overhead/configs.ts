import { nginxFrame } from '../nginx-frame.ts';

/**
 * Tidegate's defaults, except for addresses and the header that identifies clients.
 * @param authority the CA file of an upstream over TLS
 */
export function tidegateConfig(upstream: string, authority?: string): string {
  const tls = authority === undefined ? '' : `, tls: {ca: "${authority}"}`;
  return `listen: 127.0.0.1:0
admin: 127.0.0.1:0
upstreams:
  practice: {url: "${upstream}"${tls}}
clients:
  key: [header:x-api-key, ip]
`;
}

/** One worker, with one log line for each request, like Tidegate. */
export function nginxConfig(port: number, upstream: string, folder: string): string {
  return nginxFrame(
    folder,
    `${folder}/access.log`,
    `  upstream practice {
    server ${upstream};
    keepalive 256;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://practice;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
`,
  );
}

export function haproxyConfig(port: number, upstream: string): string {
  return `global
  maxconn 4096
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout connect 5s
  timeout server 60s
  http-reuse always
listen practice
  bind 127.0.0.1:${port}
  server upstream ${upstream}
`;
}
