/** Connections that requests wait for outside the gate, which does not know that they are lacking. */
export interface AwaitedConnections {
  /** Requests that wait. */
  readonly waiting: number;
  /** Of those, how many cannot go before the requests of others have ended. */
  readonly lacking: number;
  /** The tickets of the requests that use these connections. */
  holders(): ReadonlySet<unknown>;
}
