interface SidebarGroup {
  readonly text: string;
  readonly collapsed: boolean;
  readonly items: { readonly text: string; readonly link: string }[];
}

/** The pages by the reader's task: name of the file and text of the link. Each page of docs/ is listed once. */
const PAGES: Readonly<Record<string, readonly (readonly [page: string, text: string])[]>> = {
  'Install and run': [
    ['sidecar', 'Beside one application'],
    ['service', 'As a systemd service'],
    ['compose', 'With Docker Compose'],
    ['kubernetes', 'On Kubernetes'],
    ['ingress', 'Behind an ingress'],
    ['library', 'In a program'],
    ['platforms', 'On macOS and Windows'],
    ['start', 'Reduce startup time'],
    ['migration', 'Migrate from another proxy'],
    ['comparison', 'Compare with other gateways'],
  ],
  Configure: [
    ['configuration', 'Write and check a config'],
    ['providers', 'Providers'],
    ['listeners', 'Listeners'],
    ['endpoints', 'Endpoints and connections'],
    ['clients', 'Authenticate clients'],
    ['accounts', 'Accounts of a provider'],
    ['webhooks', 'Receive webhooks'],
    ['cors', 'CORS'],
  ],
  'Limit and share': [
    ['limits', 'Limits of endpoints and clients'],
    ['quotas', 'Quotas by day or month'],
    ['costs', 'Limits of points, units or tokens'],
    ['coalescing', 'Send equal reads once'],
    ['control', 'How a limit is learned'],
    ['tuning', 'Tune a policy'],
    ['simulator', 'Simulate a scenario'],
    ['workers', 'Several workers'],
    ['replicas', 'Several replicas'],
  ],
  'Retry and deliver': [
    ['idempotency', 'Retries and idempotency keys'],
    ['backoff', 'Backoff strategies'],
    ['polling', 'Polling'],
    ['deliveries', 'Durable deliveries'],
    ['messages', 'Header and body changes'],
    ['refusals', 'Refusals and timeouts'],
  ],
  Operate: [
    ['metrics', 'Metrics'],
    ['runbooks', 'Runbooks'],
    ['log', 'Log'],
    ['tracing', 'Traces'],
    ['page', 'Live page'],
    ['explain', 'Explain a request'],
    ['doctor', 'Diagnose with doctor'],
    ['command-line', 'Command line'],
    ['admin-api', 'Admin API'],
    ['reload', 'Reload'],
    ['drains', 'Shut down and drain'],
    ['bounds', 'Resource limits'],
    ['security', 'Security'],
  ],
  Reference: [
    ['benchmarks', 'Benchmarks'],
    ['performance', 'Performance'],
    ['faults', 'Fault tests'],
    ['architecture', 'Architecture'],
    ['life-of-a-request', 'The life of a request'],
    ['package', 'Package and release'],
    ['glossary', 'Glossary'],
  ],
};

export const SIDEBAR: SidebarGroup[] = Object.entries(PAGES).map(([text, pages]) => ({
  text,
  collapsed: false,
  items: pages.map(([page, label]) => ({ text: label, link: `/${page}` })),
}));
