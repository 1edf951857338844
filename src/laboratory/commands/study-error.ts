/** Why a study cannot be made, for whoever asked: one line, or mistakes of a file. */
export class StudyError extends Error {
  override readonly name = 'StudyError';
}
