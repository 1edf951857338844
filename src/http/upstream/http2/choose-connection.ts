import type { DispatchRequest } from '../dispatch-request.ts';
import type { Http2Connection } from './http2-connection.ts';

export interface ConnectionChoice {
  /** Takes the request now. */
  connection: Http2Connection | undefined;
  /** Takes it too, but is about to close or may be dead: better than none. */
  retiring: Http2Connection | undefined;
  /** A connection would take another request, but has no room for this body beside those of others. */
  lacksRoom: boolean;
}

/** The first connection with room, so that surplus connections become idle and close. */
export function chooseConnection(
  all: Iterable<Http2Connection>,
  takesRequests: (connection: Http2Connection) => boolean,
  body: DispatchRequest['body'],
): ConnectionChoice {
  const choice: ConnectionChoice = { connection: undefined, retiring: undefined, lacksRoom: false };
  for (const connection of all) {
    if (!connection.hasCapacity || !takesRequests(connection)) continue;
    if (!connection.hasRoomFor(body)) {
      choice.lacksRoom = true;
    } else if (connection.shouldRetire) {
      if (choice.retiring?.isSuspect !== false) choice.retiring = connection;
    } else {
      choice.connection = connection;
      break;
    }
  }
  return choice;
}
