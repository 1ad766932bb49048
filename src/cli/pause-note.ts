/** What elsewhere is read as a boolean, or as nothing. */
const BOOLEAN_WORDS = new Set([
  'true',
  't',
  'yes',
  'y',
  'on',
  '1',
  'false',
  'f',
  'no',
  'n',
  'off',
  '0',
  'null',
  'none',
  '~',
]);

/** Whether a text can stand for `paused:` as the reason: not if it may have been meant as yes or no. */
export function isPlainNote(text: string): boolean {
  return text !== '' && !BOOLEAN_WORDS.has(text.trim().toLowerCase());
}
