/** What stands behind the fields, and the user, of a crontab's line. */
export interface CommandText {
  readonly command: string;
  /** Undefined where no bare `%` is. */
  readonly stdin: string | undefined;
}

/**
 * Reads it as cronie does. The command ends at its first bare `%`; the rest is its standard input, where further ones
 * are line breaks; `\%` is a percent sign. In the command a backslash takes the next character with it, so that the
 * `%` of `\\%` is bare; in the input one before a `%` always escapes it.
 */
export function readCommand(text: string): CommandText {
  const [head = ''] = /^(?:[^\\%]+|\\.)*\\?/s.exec(text) ?? [];
  const command = trimCommand(head.replace(/\\./gs, (pair) => (pair === '\\%' ? '%' : pair)));
  if (head.length === text.length) return { command, stdin: undefined };
  const input = text.slice(head.length + 1);
  return { command, stdin: input.replace(/\\?%/g, (percent) => (percent === '%' ? '\n' : '%')) };
}

/** The inverse, for what {@link readCommand} reads back: no backslash stands before a line break of the input. */
export function writeCommand({ command, stdin }: CommandText): string {
  const input = stdin === undefined ? '' : `%${stdin.split('\n').map(percentEscaped).join('%')}`;
  return percentEscaped(trimCommand(command)) + input;
}

/** Blanks around a command are nothing to a shell, save those behind a backslash. */
export function trimCommand(command: string): string {
  return command.replace(/^[ \t]+|(?<![\\ \t])[ \t]+$/g, '');
}

function percentEscaped(text: string): string {
  return text.replaceAll('%', '\\%');
}
