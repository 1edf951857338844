/** A viewer of /api/events. */
import type { ClientRequest } from 'node:http';
import { atEnd } from '../at-end.ts';
import { begin } from '../clients/send.ts';

export interface EventViewer {
  /** The data of events of this name so far. */
  of(name: string): readonly unknown[];
  /** Complete events as received. */
  raw(): readonly string[];
  status(): number | undefined;
  close(): void;
}

export function watchEvents(adminUrl: string, headers: readonly string[] = []): EventViewer {
  let text = '';
  let status: number | undefined;
  const sent: ClientRequest = begin(adminUrl, '/api/events', { headers }, (incoming) => {
    status = incoming.statusCode;
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk: string) => (text += chunk));
    incoming.on('error', () => undefined);
  });
  sent.end();
  atEnd(() => void sent.destroy());
  const events = (): string[] =>
    text
      .split('\n\n')
      .slice(0, -1)
      .filter((each) => each.startsWith('id:'));
  return {
    raw: events,
    of: (name) =>
      events()
        .filter((each) => each.includes(`\nevent: ${name}\n`))
        .map((each) => JSON.parse(/\ndata: (.*)$/.exec(each)?.[1] ?? 'null') as unknown),
    status: () => status,
    close: () => void sent.destroy(),
  };
}
