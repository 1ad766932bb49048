import { CarillonError, type ErrorCode, isCarillonError } from '../domain/errors.js';

/** Codes of what a person wrote wrongly: exit code 2. */
const WRONG_USAGE: ReadonlySet<string> = new Set([
  'USAGE',
  'INVALID_OPTION',
  'INVALID_CRON',
  'INVALID_TIME_ZONE',
  'INVALID_DURATION',
  'INVALID_ID',
]);

/** A command line that does not parse; commander's text, without its own prefix. */
export class UsageError extends Error {
  readonly code = 'USAGE';

  constructor(
    message: string,
    readonly todo: string,
  ) {
    super(message);
  }
}

/** A file with several faults: the first is the message, and the document holds them all. */
export class ProblemsError extends CarillonError {
  constructor(
    readonly problems: readonly string[],
    code: ErrorCode = 'INVALID_OPTION',
  ) {
    const more = problems.length - 1;
    super(code, problems[0] ?? '', {
      field: 'file',
      todo: more === 0 ? 'Nothing was written.' : `Nothing was written; there are ${more} more problems.`,
    });
  }
}

/** What commander says, as one of our errors: its suggestion is what to do. */
export function usageError(message: string): UsageError {
  const [problem = '', suggestion] = message.replace(/^error: /, '').split('\n');
  const meant = suggestion?.replace(/^\(|\)$/g, '');
  const quoted = problem.startsWith('too many arguments')
    ? 'Put an expression with blanks in quotes.'
    : undefined;
  return new UsageError(problem.replace(/\.$/, ''), meant ?? quoted ?? 'See --help.');
}

/** A refusal of an argument or option of the command line. */
export function refuseArgument(field: string, given: unknown, problem: string, todo: string): never {
  throw new CarillonError('INVALID_OPTION', `${field} ${problem}`, { field, given, todo });
}

export function exitCodeOf(error: unknown): number {
  const code = isCarillonError(error) || error instanceof UsageError ? error.code : undefined;
  return code !== undefined && WRONG_USAGE.has(code) ? 2 : 1;
}

/** `error: <message> (<CODE>). <what to do>`, on one line. Pure. */
export function failureLine(error: unknown): string {
  if (!isCarillonError(error) && !(error instanceof UsageError)) {
    return oneLine(
      `error: ${error instanceof Error ? error.message : String(error)} (UNEXPECTED). Please report it.`,
    );
  }
  const message = error.message.replace(/\.$/, '');
  const todo = error.todo ?? '';
  // Many messages end with what to do already.
  const tail = todo === '' || message.endsWith(todo) ? '' : ` ${sentence(todo)}`;
  return oneLine(`error: ${message} (${error.code}).${tail}`);
}

/** The same for programs. Pure. */
export function failureDocument(error: unknown): { error: Record<string, unknown> } {
  if (error instanceof UsageError) {
    return { error: { code: error.code, message: error.message, todo: error.todo, retryable: false } };
  }
  if (!isCarillonError(error)) {
    return { error: { code: 'UNEXPECTED', message: error instanceof Error ? error.message : String(error) } };
  }
  const { code, message, field, given, todo, retryable } = error;
  const problems = error instanceof ProblemsError ? { problems: error.problems } : {};
  return { error: { code, message, field, given, todo, retryable, ...problems } };
}

/** One line on standard error; with `--json` the document on standard output as well. The stack only when debugging. */
export function tellFailure(error: unknown, json: boolean): void {
  if (error instanceof ProblemsError) {
    for (const problem of error.problems.slice(1)) process.stderr.write(`${oneLine(problem)}\n`);
  }
  process.stderr.write(`${failureLine(error)}\n`);
  if (json) process.stdout.write(`${JSON.stringify(failureDocument(error), null, 2)}\n`);
  if (process.env.CARILLON_LOG_LEVEL === 'debug' && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ''}\n`);
    if (error.cause instanceof Error)
      process.stderr.write(`caused by ${error.cause.stack ?? error.cause.message}\n`);
  }
}

function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}
