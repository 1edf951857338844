/** A response to a client: Node's `ServerResponse` over HTTP/1.1, `Http2StreamResponse` over HTTP/2. */
export interface HttpServerResponse {
  /** 200 until the head is written. */
  readonly statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** The whole response has been handed to the operating system. */
  readonly writableFinished: boolean;
  readonly writableNeedDrain: boolean;
  writeContinue(): void;
  /**
   * @param headers names and values in turn; HTTP/2 omits connection headers and the reason phrase
   * @throws Node's error if it refuses to write them: then nothing was sent
   */
  writeHead(status: number, reasonPhrase: string, headers: string[]): unknown;
  /** Writes the head too, if it has not been sent. False: wait for `drain`. */
  write(chunk: Buffer | string): boolean;
  addTrailers(trailers: readonly [string, string][]): void;
  end(lastChunk?: Buffer): unknown;
  /** Aborts the response, so that the client notices that it is incomplete. */
  destroy(): unknown;
  /** `close`: the response is complete, or the client has disconnected. */
  on(event: 'close' | 'drain', listener: () => void): unknown;
  once(event: 'close' | 'drain', listener: () => void): unknown;
  off(event: 'close' | 'drain', listener: () => void): unknown;
}
