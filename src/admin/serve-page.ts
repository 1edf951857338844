import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { installedFile } from '../installation.ts';
import { parseListField } from '../core/http-semantics/list-field.ts';

/**
 * Allows scripts, styles, images and connections of this origin only, nothing inline, no framing, and no text that becomes
 * markup or code: client names on the page come from outside, and its readers may operate the proxy.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  // Cached, and revalidated each time, because another version of Tidegate may run by then.
  'cache-control': 'no-cache',
};

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Every script of the page. A request path is looked up in this list and never joined to a folder. */
const SCRIPTS = [
  ...[
    'admin-client',
    'client-dialog',
    'clients-table',
    'connection-banner',
    'explanation-dialog',
    'keyed-rows',
    'keys-table',
    'main',
  ],
  ...['operator-actions', 'page-model', 'process-panel', 'rate-chart', 'requests-table', 'sse-client', 'sse-parser'],
  ...[
    'theme',
    'theme-switch',
    'timeline-list',
    'token-dialog',
    'upstream-cards',
    'upstream-figures',
    'upstream-overview',
    'uplot',
  ],
  ...['deliveries/deliveries-table', 'deliveries/delivery-dialog', 'deliveries/delivery-message'],
  ...[
    'dom/announcements',
    'dom/confirm-dialog',
    'dom/definition-list',
    'dom/dom',
    'dom/single-tab-stop',
    'dom/stored-choices',
  ],
  ...[
    'text/account-labels',
    'text/client-count',
    'text/client-labels',
    'text/delivery-labels',
    'text/endpoint-labels',
    'text/labels',
    'text/limit-labels',
    'text/outcome-labels',
    'text/quota-labels',
    'text/state-meanings',
    'text/status-changes',
  ],
];

/** Served as one file, so that the page waits for one stylesheet of ours. In order of the cascade. */
const STYLESHEETS = [
  ...['base', 'controls', 'header', 'layout', 'upstreams', 'tables', 'events', 'dialogs', 'deliveries', 'narrow'],
].map((name) => `styles/${name}.css`);

/** The files below `page/` that make up the response to each path. */
const PAGE_FILES: ReadonlyMap<string, readonly string[]> = new Map([
  ['/', ['index.html', 'markup/dialogs.html', 'markup/templates.html']],
  ['/page/page.css', STYLESHEETS],
  ...['uplot.css', 'icon.svg', ...SCRIPTS.map((name) => `${name}.js`)].map((file): [string, string[]] => [
    `/page/${file}`,
    [file],
  ]),
]);

/** Whether a path is part of the page. Page files need no token: they hold no data, and the page asks for the token. */
export function isPagePath(path: string): boolean {
  return PAGE_FILES.has(path);
}

interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly tag: string;
}

/** GET / and the files below /page. Files are read at their first request. */
export function servePage(app: FastifyInstance): void {
  for (const [path, files] of PAGE_FILES) {
    let asset: Promise<Asset> | undefined;
    app.get(path, async (request, reply) => {
      asset ??= loadAsset(files);
      return sendAsset(request, reply, await asset);
    });
  }
}

function sendAsset(request: FastifyRequest, reply: FastifyReply, { body, type, tag }: Asset): FastifyReply {
  reply.headers({ ...PAGE_HEADERS, etag: tag });
  const isUnchanged = parseListField(request.headers['if-none-match']).some((each) => each.replace(/^W\//, '') === tag);
  return isUnchanged ? reply.code(304).send() : reply.type(type).send(body);
}

async function loadAsset(files: readonly string[]): Promise<Asset> {
  const body = Buffer.concat(await Promise.all(files.map(readAsset)));
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const [file = ''] = files;
  return { body, type: CONTENT_TYPES[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream', tag };
}

/** Files of the uplot package: beside the page in a bundle, in node_modules in a checkout. */
const VENDORED_FILES: Readonly<Record<string, string>> = { 'uplot.js': 'uPlot.esm.js', 'uplot.css': 'uPlot.min.css' };

function readAsset(file: string): Promise<Buffer> {
  const bundled = readFile(new URL(`./page/${file}`, import.meta.url));
  const vendored = VENDORED_FILES[file];
  return vendored === undefined
    ? bundled
    : bundled.catch(() => readFile(installedFile(`node_modules/uplot/dist/${vendored}`)));
}
