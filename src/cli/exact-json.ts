import { randomUUID } from 'node:crypto';
import { jsonTokens } from '../domain/json-numbers.js';
import { JsonText } from '../queue/payload.js';

const STEP = '  ';

/**
 * A stored payload, to be shown as it is: its value where JavaScript would write the same, else the text itself. What is
 * no JSON is a text.
 */
export function storedData(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === jsonTokens(text).join('') ? value : new JsonText(text);
  } catch {
    return text;
  }
}

/** The JSON of a document on several lines; a {@link JsonText} in it stands as it is written, laid out like the rest. */
export function exactJson(document: unknown): string {
  const texts: string[] = [];
  // Nothing that is printed can hold it.
  const mark = randomUUID();
  const json = JSON.stringify(
    document,
    function (this: Record<string, unknown>, key, value) {
      const written = this[key];
      return written instanceof JsonText ? `${mark}${texts.push(written.text) - 1}` : value;
    },
    STEP.length,
  );
  if (texts.length === 0) return json;
  return json.replace(
    new RegExp(`^( *)(.*)"${mark}(\\d+)"`, 'gm'),
    (_line, margin: string, head: string, at: string) =>
      margin + head + laidOut(texts[Number(at)] ?? '', margin),
  );
}

/** A JSON text on one line, each of its parts as it is written. */
export function exactLine({ text }: JsonText): string {
  return jsonTokens(text).join('');
}

/** The same on several lines, as `JSON.stringify` parts them. */
function laidOut(text: string, margin: string): string {
  const tokens = jsonTokens(text);
  let depth = 0;
  let out = '';
  const line = () => `\n${margin}${STEP.repeat(depth)}`;
  for (const [at, token] of tokens.entries()) {
    if (token === '{' || token === '[') {
      depth++;
      out += token;
      if (!isEnd(tokens[at + 1])) out += line();
    } else if (isEnd(token)) {
      depth--;
      const isEmpty = tokens[at - 1] === '{' || tokens[at - 1] === '[';
      out += isEmpty ? token : line() + token;
    } else if (token === ',') out += token + line();
    else out += token === ':' ? ': ' : token;
  }
  return out;
}

function isEnd(token: string | undefined): boolean {
  return token === '}' || token === ']';
}
