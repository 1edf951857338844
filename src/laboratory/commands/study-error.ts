/** Thrown if a study cannot run. The message is one line, or the mistakes of a file. */
export class StudyError extends Error {
  override readonly name = 'StudyError';
}
