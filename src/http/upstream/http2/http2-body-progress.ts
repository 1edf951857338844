import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { constants } from 'node:http2';

/** How much of the body of a response has arrived over HTTP/2, and whether that is all of it. */
export class Http2BodyProgress {
  /** The client did not read all at once. */
  wasBackpressured = false;
  /** Bytes that arrived, that were passed on, and that Content-Length announced. */
  #received = 0;
  #delivered = 0;
  #length: number | undefined;
  #mayHaveTrailers = false;

  /** @param takesTrailers whether the client can get trailers of a response with a length */
  onHead({ 'content-length': length, trailer }: IncomingHttpHeaders, takesTrailers: boolean): void {
    if (length !== undefined) this.#length = Number(length);
    this.#mayHaveTrailers = takesTrailers && trailer !== undefined;
  }

  onReceived(bytes: number): void {
    this.#received += bytes;
  }

  /** @returns true if nothing of the response is still to be passed on, although its stream has not ended */
  onDelivered(bytes: number): boolean {
    this.#delivered += bytes;
    return this.#delivered === this.#length && !this.#mayHaveTrailers;
  }

  /**
   * Whether the response is complete when Node ends its stream. Node ends a stream that was reset like a complete one, but it is
   * closed by then. With all announced bytes it is complete, whatever the code; announced trailers may be missing. Node 24.21 does
   * not always report the end of a complete stream whose client read slowly: it closes with NO_ERROR. A body of unknown length
   * that is read slowly and reset with NO_ERROR in its middle looks the same.
   */
  appearsComplete(stream: ClientHttp2Stream): boolean {
    if (!stream.closed) return true;
    if (this.#length !== undefined) return this.#received === this.#length;
    return stream.rstCode === constants.NGHTTP2_NO_ERROR && this.wasBackpressured;
  }
}
