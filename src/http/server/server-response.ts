/** What an answer is written to: Node's own `ServerResponse` over HTTP/1.1, `Http2Outbound` over HTTP/2. */
export interface Outbound {
  /** Of the head that was written; 200 before. */
  readonly statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** All of the answer has been handed to the operating system. */
  readonly writableFinished: boolean;
  readonly writableNeedDrain: boolean;
  writeContinue(): void;
  /**
   * @param headers names and values in turn; HTTP/2 leaves out what is about a connection, and the reason phrase
   * @throws the error of Node, when it refuses to write them: nothing has gone out then
   */
  writeHead(status: number, reasonPhrase: string, headers: string[]): unknown;
  /** Writes the head too, if it has not gone out. False: wait for `drain`. */
  write(chunk: Buffer | string): boolean;
  addTrailers(trailers: readonly [string, string][]): void;
  end(rest?: Buffer): unknown;
  /** Breaks it off, so that the client sees that it is not whole. */
  destroy(): unknown;
  /** `close`: nothing more will be written, because all has been or because the client has gone. */
  on(event: 'close' | 'drain', listener: () => void): unknown;
  once(event: 'close' | 'drain', listener: () => void): unknown;
  off(event: 'close' | 'drain', listener: () => void): unknown;
}
